/**
 * A form built from the schema: for numbers a slider and a field, for dates a calendar, for categories a list.
 *
 * What does not fit gets a sentence beside its field, and the form keeps the last row that fits. A column that follows from
 * another by a declared link has no field: it moves with the other one. Other rules are about advice, and bind no person.
 */
import type { Catalogue } from "./catalogue";
import { element } from "./drawings";
import type { ColumnFacts } from "./letter";
import { dateText, levelText, policyValue, readValue, type CategoricalColumn, type LinkRule, type NumericColumn, type Schema } from "./schema";

const SLIDER_STEPS = 200;
const A_NUMBER = "number";

/** One column's field: shows a raw value, and reads what was entered; NaN where it does not fit. */
interface Field {
  readonly box: HTMLElement;
  readonly control: HTMLElement;
  readonly error: HTMLElement;
  show(raw: number): void;
  /** The raw value, or the sentence that says what is wrong. */
  read(): number | string;
}

export class PersonForm {
  readonly box = element("form", "entries");
  private readonly fields = new Map<string, Field>();
  private readonly links: readonly LinkRule[];
  private readonly wrong = new Set<string>();
  private readonly row: Float64Array;

  constructor(
    private readonly schema: Schema,
    private readonly words: Readonly<Record<string, ColumnFacts>>,
    private readonly catalogue: Catalogue,
    start: Float64Array,
    private readonly onChange: (row: Float64Array) => void,
  ) {
    this.links = schema.rules.filter((rule) => rule.rule === "link");
    this.row = start.slice();
    const followers = new Set(this.links.map((rule) => rule.other));
    this.box.noValidate = true;
    this.box.addEventListener("submit", (event) => event.preventDefault());
    schema.columns.forEach((column, j) => {
      if (followers.has(column.name)) return;
      const field = column.kind === "numeric" ? this.numberField(column) : this.levelField(column);
      field.show(start[j]);
      this.fields.set(column.name, field);
      this.box.append(field.box);
      field.box.addEventListener("input", () => this.entered(column.name));
    });
  }

  /** The last row that fits. */
  get current(): Float64Array {
    return this.row.slice();
  }

  get hasErrors(): boolean {
    return this.wrong.size > 0;
  }

  private entered(name: string): void {
    const read = this.fields.get(name)!.read();
    this.mark(name, typeof read === "string" ? read : "");
    if (typeof read === "string") return;
    this.row[this.schema.indexOf(name)] = read;
    this.follow(this.row, name);
    this.onChange(this.current);
  }

  private mark(name: string, told: string): void {
    const { control, error } = this.fields.get(name)!;
    error.textContent = told ? `${told} ${this.catalogue.say("The page still shows the last entries that fit.")}` : "";
    if (told) {
      this.wrong.add(name);
      control.setAttribute("aria-invalid", "true");
    } else {
      this.wrong.delete(name);
      control.removeAttribute("aria-invalid");
    }
  }

  /** Moves the columns that follow from this one. */
  private follow(row: Float64Array, name: string): void {
    for (const link of this.links) {
      if (link.column !== name) continue;
      const column = this.schema.column(name);
      if (column.kind !== "categorical") continue;
      const value = link.values[levelText(column.levels[row[this.schema.indexOf(name)]])];
      if (value === undefined) continue;
      row[this.schema.indexOf(link.other)] = readValue(this.schema.column(link.other), value);
      this.follow(row, link.other);
    }
  }

  private label(name: string): string {
    return this.words[name].label;
  }

  // --- fields ------------------------------------------------------------------------------------------------------------

  private numberField(column: NumericColumn): Field {
    const id = `entry-${this.fields.size}`;
    const say = this.catalogue.say.bind(this.catalogue);
    const words = this.words[column.name];
    const written = (value: number): string => (column.date ? dateText(value) : this.catalogue.number(value, column.integer ? 0 : undefined));
    const { low, high } = column;
    const input = element("input");
    Object.assign(input, column.date ? { type: "date", min: dateText(low), max: dateText(high) } : { type: "text", autocomplete: "off" });
    if (!column.date) input.inputMode = low < 0 ? "text" : column.integer ? "numeric" : "decimal";
    const slider = element("input");
    Object.assign(slider, { type: "range", min: String(low), max: String(high), step: String(stepOf(column, low, high)) });
    slider.setAttribute("aria-label", words.label);
    slider.tabIndex = column.date ? -1 : 0;
    const codes = this.codeList(column, words);
    const range = say("from {low} to {high}", { low: written(low), high: written(high) });
    const hint = `${words.unit ? `${words.unit}, ` : ""}${range}${column.missing !== null && !codes ? `. ${say("Leave this empty if it is not known.")}` : ""}`;
    const made = framed(id, words, input, hint, [element("div", "pair-of-inputs", [input, ...(column.date ? [] : [slider])]), ...(codes ? [codes] : [])]);
    if (codes) codes.setAttribute("aria-label", words.label);
    const showNumber = (isNumber: boolean): void => {
      input.parentElement!.hidden = !isNumber;
    };
    slider.addEventListener("input", () => {
      input.value = written(Number(slider.value));
      slider.setAttribute("aria-valuetext", `${input.value} ${words.unit}`.trim());
    });
    codes?.addEventListener("input", () => showNumber(codes.value === A_NUMBER));
    return {
      ...made,
      control: input,
      show: (raw) => {
        const isCode = column.codes.includes(raw);
        if (codes) codes.value = isCode ? String(raw) : A_NUMBER;
        showNumber(!isCode);
        const value = isCode ? Math.min(Math.max(0, low), high) : raw;
        input.value = column.date ? dateText(value) : this.exact(value);
        slider.value = String(value);
      },
      read: () => {
        if (codes && codes.value !== A_NUMBER) return Number(codes.value);
        const text = input.value.trim();
        if (text === "" && column.missing !== null && !(input.validity.badInput)) return policyValue(column);
        const value = column.date ? Date.parse(`${text}T00:00Z`) / 86_400_000 : this.catalogue.parsed(text);
        const fits = value >= low && value <= high && (!column.integer || Number.isInteger(value));
        if (!fits) return this.outside(column, written(low), written(high));
        slider.value = String(value);
        return value;
      },
    };
  }

  /** A number as it can be typed again: all its digits, without marks between thousands. */
  private exact(value: number): string {
    return String(value).replace(".", this.catalogue.number(0.5, 1)[1]);
  }

  private outside(column: NumericColumn, low: string, high: string): string {
    const given = { label: this.label(column.name), low, high };
    if (column.date) return this.catalogue.say("“{label}” must be a date from {low} to {high}.", given);
    if (column.integer) return this.catalogue.say("“{label}” must be a whole number from {low} to {high}.", given);
    return this.catalogue.say("“{label}” must be a number from {low} to {high}.", given);
  }

  private codeList(column: NumericColumn, words: ColumnFacts): HTMLSelectElement | null {
    if (!column.codes.length) return null;
    const options = column.codes.map((code) => option(String(code), words.values[String(code)] ?? String(code)));
    return element("select", "codes", [option(A_NUMBER, this.catalogue.say("a number")), ...options]);
  }

  private levelField(column: CategoricalColumn): Field {
    const id = `entry-${this.fields.size}`;
    const words = this.words[column.name];
    const select = element(
      "select",
      "",
      column.levels.map((level, k) => option(String(k), words.values[levelText(level)] ?? levelText(level))),
    );
    const made = framed(id, words, select, "", [select]);
    return { ...made, control: select, show: (raw) => void (select.value = String(raw)), read: () => Number(select.value) };
  }
}

function option(value: string, text: string): HTMLOptionElement {
  const made = element("option", "", text);
  made.value = value;
  return made;
}

/** Label, field, hint and place for an error, tied to each other for those who do not see them. */
function framed(id: string, words: ColumnFacts, control: HTMLElement, hint: string, content: readonly HTMLElement[]): { box: HTMLElement; error: HTMLElement } {
  control.id = id;
  const label = element("label", "", words.label);
  label.htmlFor = id;
  const about = element("p", "hint", [words.text, hint].filter(Boolean).join(" · "));
  about.id = `${id}-hint`;
  const error = element("p", "wrong");
  error.id = `${id}-error`;
  error.setAttribute("aria-live", "polite");
  control.setAttribute("aria-describedby", `${about.id} ${error.id}`);
  const box = element("div", "entry", [label, ...content, ...(about.textContent ? [about] : []), error]);
  if (!about.textContent) control.setAttribute("aria-describedby", error.id);
  return { box, error };
}

function stepOf(column: NumericColumn, low: number, high: number): number | "any" {
  if (column.integer) return 1;
  const step = 10 ** Math.floor(Math.log10((high - low) / SLIDER_STEPS));
  return Number.isFinite(step) && step > 0 ? step : "any";
}
