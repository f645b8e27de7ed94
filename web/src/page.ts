/**
 * The live page: loads its files, builds the form, and shows what the Worker computes, piece by piece.
 *
 * On a change the model's answer is shown at once, then reasons with the first stored rows, then what would change it, then
 * reasons with all rows. Pieces of an older question are dropped.
 */
import { Catalogue } from "./catalogue";
import { element, type DrawnCurve } from "./drawings";
import type { EngineFiles, Piece } from "./engine";
import { MANIFEST, SiteFiles } from "./files";
import { PersonForm } from "./form";
import { Letter, valueOf, type ChangesFacts, type ExplanationFacts, type PageFacts } from "./letter";
import { readPane, type Pane, type Part } from "./rows";
import { isObject, type Level } from "./schema";
import { ensureDigest } from "./sha256";
import { fill, showChanges, showNumbers, showOutcome, showPromise, showReasons, showStandings, type CurveOfPage, type PageNotes } from "./view";
import type { FromWorker, ToWorker } from "./worker";

type Facts = PageFacts & PageNotes & { readonly format: string; readonly ownModel: boolean; readonly start: Readonly<Record<string, Level>>; readonly readFirst: readonly string[] };

const FORMAT = "vitrail-page/1";
const WIDE = "(min-width: 64rem)";
const FILES = { pane: "pane.pane", prepared: "prepared.zip", model: "model.onnx", runtime: "runtime.wasm" } as const;
const SEARCH = "search.zip";

class LivePage {
  private readonly catalogue: Catalogue;
  private readonly form: PersonForm;
  private readonly curves: ReadonlyMap<string, CurveOfPage>;
  private readonly boxes: Record<"outcome" | "why" | "changes" | "standing" | "numbers" | "promise", HTMLElement>;
  private readonly answerBar = element("p", "answer-bar");
  private id = 0;
  private output: number | null = null;
  private explanation: ExplanationFacts | null = null;
  private changes: ChangesFacts | null = null;
  private standings: Extract<Piece, { kind: "answer" }>["standings"] = [];

  constructor(
    private readonly facts: Facts,
    private readonly pane: Pane,
    private readonly worker: Worker,
    private readonly hashes: Readonly<Record<string, string>>,
  ) {
    this.catalogue = new Catalogue(facts.catalogue);
    this.curves = facts.ownModel && pane.report !== null ? curvesOf(pane.report) : new Map();
    this.form = new PersonForm(pane.schema, facts.columns, this.catalogue, pane.schema.readPoint(facts.start), (row) => this.ask(row));
    this.boxes = {
      outcome: element("div", "letter outcome"),
      why: section("why", "letter"),
      changes: section("changes", "letter"),
      standing: section("standing"),
      numbers: section("numbers"),
      promise: section("promise", "letter"),
    };
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.heard(data);
  }

  /** Puts everything in its place, and asks about the person that the form starts with. */
  show(main: HTMLElement): void {
    const { words, readFirst, pane } = this.facts;
    const { outcome, why, changes, standing, numbers, promise } = this.boxes;
    outcome.id = "outcome";
    outcome.setAttribute("aria-live", "polite");
    outcome.setAttribute("aria-atomic", "true");
    this.answerBar.setAttribute("aria-hidden", "true"); // the outcome above says the same to those who listen
    const first = readFirst.map((text) => Object.assign(element("p", "care", text), { lang: "en" }));
    if (pane.expires !== null && new Date().toISOString().slice(0, 10) > pane.expires) {
      const given = { day: pane.expires };
      first.push(element("p", "care", this.catalogue.say("This page was meant to be used until {day}, and that day has passed. Ask whoever gave it to you for a newer one.", given)));
    }
    const head = element("div", "head", [...(words.sender ? [element("p", "sender", words.sender)] : []), outcome, ...first]);
    const rest = element("div", "rest", [why, changes, standing, numbers, promise, ...(words.footer ? [element("p", "legal", words.footer)] : [])]);
    rest.append(element("footer", "", this.catalogue.say("Made with Vitrail. This page loads nothing from elsewhere and sends nothing.")));
    fill(main, head, this.panel(), rest);
    this.ask(this.form.current);
  }

  private panel(): HTMLElement {
    const hint = this.catalogue.say("Change an entry, and the result and its reasons follow at once. Nothing of it is sent anywhere.");
    const fold = element("details", "", [element("summary", "", this.catalogue.say("Your entries")), element("p", "soft", hint), this.answerBar, this.form.box]);
    const wide = matchMedia(WIDE);
    fold.open = wide.matches;
    wide.addEventListener("change", () => void (fold.open = wide.matches));
    return element("aside", "panel", [fold]);
  }

  private ask(row: Float64Array): void {
    this.id++;
    for (const box of [this.boxes.why, this.boxes.changes]) box.setAttribute("aria-busy", "true");
    this.worker.postMessage({ kind: "ask", id: this.id, row } satisfies ToWorker);
  }

  private heard(message: FromWorker): void {
    if (message.kind === "failed") showError(message.sentence);
    if (message.kind === "piece" && message.id === this.id) this.take(message.piece);
    if (message.kind === "done" && message.id === this.id) {
      this.boxes.changes.removeAttribute("aria-busy"); // a page without a search has nothing to wait for
      document.body.dataset.state = "done";
    }
  }

  private take(piece: Piece): void {
    const { boxes, facts } = this;
    if (piece.kind === "answer") {
      document.body.dataset.state = "answer";
      this.output = piece.output;
      this.standings = piece.standings;
      this.changes = null;
      const letter = this.letter();
      showOutcome(boxes.outcome, letter);
      document.title = letter.title;
      fill(this.answerBar, letter.title, element("small", "", letter.shown(piece.output)));
    } else if (piece.kind === "reasons") {
      this.explanation = piece.explanation;
      const letter = this.letter();
      showOutcome(boxes.outcome, letter);
      showReasons(boxes.why, letter);
      boxes.why.removeAttribute("aria-busy");
      document.body.dataset.state = "reasons";
      document.body.dataset.rows = String(piece.nRows);
      requestAnimationFrame(() => {
        performance.mark("vitrail:reasons");
        // Everything below what is read first waits until that is on the screen.
        setTimeout(() => this.showRest(letter, piece.claim, piece.notes));
      });
    } else {
      this.changes = piece.changes;
      showChanges(boxes.changes, this.letter());
      boxes.changes.removeAttribute("aria-busy");
      if (Object.keys(facts.words.classes).length) showOutcome(boxes.outcome, this.letter());
    }
  }

  private showRest(letter: Letter, claim: string, notes: readonly string[]): void {
    const { boxes, facts, pane } = this;
    showStandings(boxes.standing, letter, pane.schema, this.curves, this.standings, facts);
    showNumbers(boxes.numbers, letter, claim, facts);
    showPromise(boxes.promise, letter, facts, this.hashes, notes);
  }

  private letter(): Letter {
    const { columns } = this.pane.schema;
    const row = this.form.current;
    const point = Object.fromEntries(columns.map((column, j) => [column.name, valueOf(column, row[j])]));
    return new Letter(this.facts, { point, output: this.output, askedModel: true, explanation: this.explanation, changes: this.changes });
  }
}

/** The pane's curves with all that is drawn of them; those of partial dependence where there are both. */
function curvesOf(report: Part): Map<string, CurveOfPage> {
  const effects = report.fields.pdp ?? report.fields.ale;
  const made = new Map<string, CurveOfPage>();
  if (!isObject(effects) || !isObject(effects.curves)) return made;
  for (const [name, fields] of Object.entries(effects.curves)) {
    if (!isObject(fields)) continue;
    const numbers = (value: unknown): number[] | null => (value === null || value === undefined ? null : [...report.numbers(value, name).data]);
    const categorical = fields.categorical === true;
    const levels = isObject(fields.x) ? fields.x.levels : fields.x;
    const density = isObject(fields.density) ? { edges: numbers(fields.density.edges), shares: numbers(fields.density.shares) ?? [] } : null;
    const x = categorical ? (levels as Level[]) : (numbers(fields.x) ?? []);
    const drawn: DrawnCurve = { categorical, x, y: numbers(fields.y) ?? [], lower: numbers(fields.lower), upper: numbers(fields.upper), density };
    made.set(name, { drawn, claim: String(fields.band_claim) });
  }
  return made;
}

function section(id: string, kind = ""): HTMLElement {
  return Object.assign(element("section", kind), { id });
}

/** What cannot be done, in a sentence, where the answer would be. */
function showError(sentence: string): void {
  document.body.dataset.state = "failed";
  const said = element("p", "care", [element("b", "", `${document.body.dataset.failed ?? ""} `), Object.assign(element("span", "", sentence), { lang: "en" })]);
  said.setAttribute("role", "alert");
  const box = document.getElementById("outcome") ?? document.getElementById("loading");
  box?.after(said);
  document.getElementById("loading")?.remove();
}

async function workerOf(files: SiteFiles): Promise<Worker> {
  if (!files.inOnePage) return new Worker("worker.js");
  const script = new Blob([(await files.get("worker.js")) as Uint8Array<ArrayBuffer>], { type: "text/javascript" });
  return new Worker(URL.createObjectURL(script));
}

/** The Worker with its files, once it says that it is ready. */
async function opened(files: SiteFiles, content: EngineFiles): Promise<Worker> {
  const worker = await workerOf(files);
  await new Promise<void>((resolve, reject) => {
    worker.onerror = (event) => reject(new Error(event.message || "the script that computes could not be started"));
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => (data.kind === "failed" ? reject(new Error(data.sentence)) : resolve());
    worker.postMessage({ kind: "open", files: content } satisfies ToWorker, [content.runtime.buffer]);
  });
  return worker;
}

async function start(): Promise<void> {
  if (typeof WebAssembly !== "object") throw new Error("This browser has no WebAssembly, which runs the model; a newer one has.");
  ensureDigest();
  const files = await SiteFiles.open();
  const names = Object.entries(FILES);
  const [facts, search, ...contents] = await Promise.all([
    files.json("page.json") as Promise<Facts>,
    files.has(SEARCH) ? files.get(SEARCH) : null,
    ...names.map(([, name]) => files.get(name)),
  ]);
  if (facts.format !== FORMAT) throw new Error(`page.json has the format '${String(facts.format)}', and this page reads '${FORMAT}'; write the site again`);
  const content = { ...Object.fromEntries(names.map(([key], k) => [key, contents[k]])), search } as unknown as EngineFiles;
  const pane = await readPane(content.pane);
  const worker = await opened(files, content);
  new LivePage(facts, pane, worker, files.shown).show(document.querySelector("main")!);
  if (!files.inOnePage && "serviceWorker" in navigator) {
    navigator.serviceWorker.register("service_worker.js").catch(() => undefined); // without one it works as before, but not offline
  }
}

start().catch((error: unknown) => showError(error instanceof Error ? error.message : `${String(error)} (${MANIFEST})`));
