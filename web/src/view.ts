/** The letter on the screen: the same sections, classes and order as Python's person.html, built with DOM methods. */
import { barsDrawing, curveDrawing, element, sizeOf, type DrawnCurve } from "./drawings";
import type { StandingFacts } from "./engine";
import type { Letter, Reason } from "./letter";
import type { Schema } from "./schema";

const CARDS_FIRST = 4;

/** What a page says of itself, whoever reads it. Written by Python's `live.facts`. */
export interface PageNotes {
  readonly promise: readonly string[];
  readonly trainedOn: string;
  readonly guarantee: { readonly sentence: string; readonly epsilon: number; readonly delta: number };
  readonly pane: { readonly dataset: string; readonly created: string; readonly tool: string; readonly version: string; readonly expires: string | null };
  readonly curveRemarks: Readonly<Record<string, string>>;
  readonly claims: Readonly<Record<string, string>>;
  readonly marks: Readonly<Record<string, string>>;
}

export interface CurveOfPage {
  readonly drawn: DrawnCurve;
  readonly claim: string;
}

/** Fills a box with nodes, in place of what was there. */
export function fill(box: HTMLElement, ...content: readonly (Node | string | null)[]): void {
  box.replaceChildren(...content.filter((one) => one !== null));
}

export function showOutcome(box: HTMLElement, letter: Letter): void {
  box.className = `letter outcome${letter.isGood === null ? "" : letter.isGood ? " good" : " bad"}`;
  fill(box, element("h1", "", letter.title), ...letter.lead.map((text, k) => element("p", k === 0 ? "lead" : "", text)));
}

export function showReasons(box: HTMLElement, letter: Letter): void {
  const say = letter.catalogue.say.bind(letter.catalogue);
  const giveOrTake = (amount: string): string => say("± {amount}", { amount });
  const item = (reason: Reason): HTMLElement => {
    const doubt = !reason.certain && reason.giveOrTake ? say("This one may be chance: the noise that protects people is as large.") : "";
    const texts = [doubt, reason.text].filter(Boolean).map((text) => element("p", "text", text));
    const line = element("div", "reason", [element("span", "", reason.sentence), sizeOf(reason.amount, reason.giveOrTake, giveOrTake)]);
    return element("li", reason.good === null ? "" : reason.good ? "good" : "bad", [line, ...texts]);
  };
  const parts = letter.toldParts.flatMap(([heading, told]) => [element("h2", "", heading), element("ol", "reasons", told.map(item))]);
  const little = letter.tooLittle ? [element("h2", "", say("The reasons")), element("p", "care", letter.tooLittle)] : [];
  const after = [letter.rest, letter.howSure].filter(Boolean).join(" ");
  const codes = letter.reasonCodes.map(([code, text]) => element("li", "", [element("b", "", code), ` ${text}`]));
  fill(
    box,
    ...little,
    ...parts,
    after ? element("p", "soft", after) : null,
    ...(codes.length ? [element("h2", "", say("Reason codes")), element("ol", "", codes)] : []),
  );
}

export function showChanges(box: HTMLElement, letter: Letter): void {
  const say = letter.catalogue.say.bind(letter.catalogue);
  const answers = letter.answers.map((answer) => {
    const lines = answer.map((change): (Node | string)[] => [
      element("b", "", `${change.label}: ${change.after}`),
      ` ${say("instead of {before}", { before: change.before })}`,
    ]);
    return element("li", "", lines.length === 1 ? lines[0] : [element("ul", "", lines.map((line) => element("li", "", line)))]);
  });
  fill(
    box,
    element("h2", "", letter.changesHeading),
    element("p", "", letter.changesLead),
    answers.length ? element("ul", "changes", answers) : null,
    element("p", "soft", say("Each was checked by asking the model itself. They describe the model as it is today, not the world, and are no promise of a later decision.")),
  );
}

/** Where the person stands on the curves of the largest reasons; the others are drawn when they are unfolded. */
export function showStandings(
  box: HTMLElement,
  letter: Letter,
  schema: Schema,
  curves: ReadonlyMap<string, CurveOfPage>,
  standings: readonly StandingFacts[],
  notes: PageNotes,
): void {
  const say = letter.catalogue.say.bind(letter.catalogue);
  const wasOpen = box.querySelector("details")?.open ?? false;
  const groups = schema.groups;
  const sorted = letter.reasons.flatMap((reason) => groups.get(reason.column) ?? [reason.column]);
  const names = [...new Set([...sorted, ...schema.names])];
  const ordered = names.flatMap((name) => standings.filter((one) => one.column === name));
  box.hidden = ordered.length === 0;
  const cards = (some: readonly StandingFacts[]): HTMLElement[] => some.map((one) => standingCard(one, letter, curves.get(one.column)!, notes));
  const claim = [...new Set(ordered.map((one) => curves.get(one.column)!.claim))].map((one) => say(notes.claims[one]));
  const lead = say("How the result goes with each entry, on average over everybody in the data; your place is marked. Shaded: the noise that protects people. Grey: where the people are.");
  const others = element("details", "fold", [element("summary", "", say("All other entries"))]);
  const drawOthers = (): void => {
    if (others.open && others.childElementCount === 1) others.append(element("div", "cards", cards(ordered.slice(CARDS_FIRST))));
  };
  others.addEventListener("toggle", drawOthers);
  others.open = wasOpen;
  fill(
    box,
    element("h2", "", say("Where you stand")),
    element("p", "", [lead, ...claim].join(" ")),
    element("div", "cards letter-cards", cards(ordered.slice(0, CARDS_FIRST))),
    ordered.length > CARDS_FIRST ? others : null,
  );
}

function standingCard(standing: StandingFacts, letter: Letter, { drawn, claim }: CurveOfPage, notes: PageNotes): HTMLElement {
  const { column, output, halfWidth } = standing;
  const say = letter.catalogue.say.bind(letter.catalogue);
  const own = letter.person.point[column];
  const half = halfWidth === null ? "" : ` ± ${letter.amount(halfWidth, { sign: false })}`;
  const at = say("At {value}: {output}", { value: letter.valueText(column, own), output: letter.shown(output) + half });
  const label = letter.wordsOf(column).label;
  const mark = halfWidth === null ? "" : ` (${say(notes.marks[claim])})`;
  const remark = notes.curveRemarks[column] ? element("p", "remark", notes.curveRemarks[column]) : null;
  if (remark !== null) remark.lang = "en";
  const writers = { output: (value: number) => letter.shown(value), level: (value: string | number | boolean) => letter.valueText(column, value, true) };
  const figure = element("figure", "", [...(remark === null ? [] : [remark]), curveDrawing(drawn, own, `${label}: ${at}`, writers)]);
  return element("article", "card", [element("h3", "", label), element("p", "", at + mark), figure]);
}

export function showNumbers(box: HTMLElement, letter: Letter, claim: string, notes: PageNotes): void {
  const say = letter.catalogue.say.bind(letter.catalogue);
  const entries = letter.entries.map(([name, value]) => element("div", "", [element("dt", "", name), element("dd", "", value)]));
  const lead = say("What every entry adds to the result; lines show the noise that protects people. A pale bar may be chance.");
  const { bars } = letter;
  fill(
    box,
    element("h2", "", say("The numbers")),
    bars.length ? element("p", "", `${lead} ${say(notes.claims[claim])}`) : null,
    bars.length ? barsDrawing(bars, (amount) => say("± {amount}", { amount })) : null,
    element("h3", "entered", say("What was entered")),
    element("dl", "facts", entries),
  );
}

/** What is promised to whom, that the model is public, and, folded, numbers and hashes. */
export function showPromise(
  box: HTMLElement,
  letter: Letter,
  notes: PageNotes,
  hashes: Readonly<Record<string, string>>,
  technical: readonly string[],
): void {
  const say = letter.catalogue.say.bind(letter.catalogue);
  const wasOpen = box.querySelector("details")?.open ?? false;
  const { guarantee, pane, trainedOn } = notes;
  const modelSaid = trainedOn
    ? say("The model itself is part of this page, so it is public: whoever has the page has the model. It was trained on: {data}.", { data: trainedOn })
    : say("The model itself is part of this page, so it is public: whoever has the page has the model.");
  const facts: [string, string][] = [
    ["Promise", guarantee.sentence],
    ["Epsilon, delta", `${guarantee.epsilon.toPrecision(4).replace(/\.?0+$/, "")}, ${guarantee.delta.toExponential(2).replace(/\.?0+e/, "e")}`],
    ["Data", `${pane.dataset}, paid for by ${pane.created}`],
    ...(pane.version ? [["Version", pane.version] as [string, string]] : []),
    ...(pane.expires ? [["Meant to be used until", pane.expires] as [string, string]] : []),
    ["Pane, SHA-256", hashes["pane.pane"]],
    ["Model, SHA-256", hashes["model.onnx"]],
    ["Made with", pane.tool],
  ];
  const lines = facts.map(([name, value]) => element("div", "line", [element("dt", "", name), element("dd", "", value)]));
  const english = element("div", "", [...technical.map((text) => element("p", "", text)), element("div", "label", [element("dl", "", lines)])]);
  english.lang = "en";
  const fold = element("details", "fold", [element("summary", "", say("Privacy label and technical notes")), english]);
  fold.open = wasOpen;
  fill(
    box,
    element("h2", "", say("What this means for you")),
    element("p", "", say("The model and the reasons are computed here, in your own browser. What you enter stays on this device, and the records of other people stay with whoever holds them: this page has none of them.")),
    element("h2", "", say("What this means for the people in the data")),
    ...notes.promise.map((text) => element("p", "", text)),
    element("p", "", modelSaid),
    fold,
  );
}
