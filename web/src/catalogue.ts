/** The page's own sentences in one language, and how it writes numbers. Mirrors `vitrail.show.catalogue`. */

export type Values = Readonly<Record<string, string>>;

/** What Python's `live.site` writes of a catalogue. */
export interface CatalogueFacts {
  readonly language: string;
  readonly direction: "ltr" | "rtl";
  /** Between thousands, before decimals, before the per cent sign. */
  readonly separators: readonly [string, string, string];
  /** Translations by the English sentence. */
  readonly sentences: Readonly<Record<string, string>>;
}

export class Catalogue {
  constructor(private readonly facts: CatalogueFacts) {}

  get language(): string {
    return this.facts.language;
  }

  /** The sentence in this language, with values in the places that are named in braces. */
  say(sentence: string, values: Values = {}): string {
    const said = this.facts.sentences[sentence] ?? sentence;
    return said.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
  }

  /** A number as the language writes it; without decimals with about three digits. */
  number(value: number, decimals = decimalsFor(value), sign = false): string {
    const [thousands, point] = this.facts.separators;
    const digits = fixed(Math.abs(value), decimals);
    const [whole, rest] = digits.split(".");
    const grouped = whole.replace(/\B(?=(\d{3})+$)/g, thousands);
    const isZero = !/[1-9]/.test(digits);
    const before = isZero ? "" : value < 0 ? "\u2212" : sign ? "+" : "";
    return before + grouped + (rest === undefined ? "" : point + rest);
  }

  /** A share as per cent. */
  perCent(share: number, decimals = 0): string {
    return `${this.number(100 * share, decimals)}${this.facts.separators[2]}%`;
  }

  /** A number as a person may type it in this language, or in English: NaN where it is none. */
  parsed(text: string): number {
    const [thousands, point] = this.facts.separators;
    const bare = text.replace(/[\s\u00a0\u202f]/g, "").replace("\u2212", "-");
    const plain = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
    if (point === ".") return plain.test(bare.replaceAll(",", "")) ? Number(bare.replaceAll(",", "")) : NaN;
    // "1.234" is a thousand and more in such a language; "1.5" can only be meant as a decimal.
    const own = /^[+-]?\d{1,3}(\.\d{3})+(,\d*)?$/.test(bare) ? bare.replaceAll(thousands, "") : bare;
    const english = own.replace(point, ".");
    return plain.test(english) ? Number(english) : NaN;
  }
}

/** Decimals that show a number with so many digits; none of whole numbers. */
export function decimalsFor(value: number, digits = 3): number {
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return 0;
  const exponent = Number(Math.abs(value).toExponential(6).split("e")[1]);
  return Math.max(0, Math.min(8, digits - 1 - exponent));
}

/** As Python's `f"{value:.{decimals}f}"`: `toFixed` rounds exact halves up, Python to the even digit. */
function fixed(value: number, decimals: number): string {
  const rounded = value.toFixed(decimals);
  if (value >= 1e21) return BigInt(value).toString();
  const long = value.toFixed(Math.min(100, decimals + 60));
  const cut = long.indexOf(".") + 1 + decimals;
  const isTie = /^50*$/.test(long.slice(cut));
  if (!isTie) return rounded;
  const truncated = decimals === 0 ? long.slice(0, cut - 1) : long.slice(0, cut);
  return Number(truncated[truncated.length - 1]) % 2 === 0 ? truncated : rounded;
}

/** How a value of a point is written: as Python's `results.checks.shown_text`. */
export function shownText(value: unknown): string {
  if (value === null || value === undefined) return "missing";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value === 0 ? 0 : value);
  const [digits, power] = value.toExponential(5).split("e");
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 6) {
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return `${trimmed(digits)}e${exponent < 0 ? "-" : "+"}${size}`;
  }
  return trimmed(value.toFixed(Math.max(0, 5 - exponent)));
}

function trimmed(digits: string): string {
  return digits.includes(".") ? digits.replace(/\.?0+$/, "") : digits;
}
