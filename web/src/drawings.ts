/**
 * Curves as inline SVG and reasons as bars, built with DOM methods. Mirrors `vitrail.show.drawings`.
 *
 * Classes of the style sheet colour them, so that they follow dark mode; lengths are in units of the drawing.
 */
import type { LetterBar } from "./letter";
import type { Level } from "./schema";

const WIDTH = 360;
const LINE_HEIGHT = 170;
const ROW = 21;
const [LEFT, RIGHT, TOP, BOTTOM] = [46, 10, 8, 22];
const NAMES = 138;
const LONGEST_NAME = 20;
const MOST_HOVERED = 40;
const MOST_LEVELS = 9;
const FOOT = 0.14;
const SVG = "http://www.w3.org/2000/svg";

/** A curve over numbers or levels, with its band and how the rows lie along it. */
export interface DrawnCurve {
  readonly categorical: boolean;
  readonly x: readonly Level[];
  readonly y: readonly number[];
  readonly lower: readonly number[] | null;
  readonly upper: readonly number[] | null;
  readonly density: { readonly edges: readonly number[] | null; readonly shares: readonly number[] } | null;
}

export interface Writers {
  /** Writes an output. */
  readonly output: (value: number) => string;
  /** Writes a value of the column. */
  readonly level: (value: Level) => string;
}

type Scale = (value: number) => number;

/** A curve, with the place of a value marked. */
export function curveDrawing(curve: DrawnCurve, value: Level | null, description: string, writers: Writers): SVGSVGElement {
  const shown = mostCommonLevels(curve, value);
  return shown.categorical ? levelsDrawing(shown, value, description, writers) : lineDrawing(shown, value, description, writers);
}

function lineDrawing(curve: DrawnCurve, value: Level | null, description: string, { output, level }: Writers): SVGSVGElement {
  const x = curve.x as readonly number[];
  const edges = curve.density?.edges ?? null;
  const first = Math.min(x[0], edges?.[0] ?? x[0]);
  const last = Math.max(x[x.length - 1], edges?.[edges.length - 1] ?? x[x.length - 1]);
  const limits = curveLimits(curve);
  const low = limits[0] - (edges === null ? 0 : ((limits[1] - limits[0]) * FOOT) / (1 - FOOT));
  const ground = LINE_HEIGHT - BOTTOM;
  const across = scale([first, last], LEFT, WIDTH - RIGHT);
  const up = scale([low, limits[1]], ground, TOP);
  const drawing = groundOf(LINE_HEIGHT, description);
  for (const tick of ticks(limits, 4)) {
    shape(drawing, "line", "grid", { x1: LEFT, x2: WIDTH - RIGHT, y1: up(tick), y2: up(tick) });
    shape(drawing, "text", "tick end", { x: LEFT - 5, y: up(tick) + 3.5 }, output(tick));
  }
  if (curve.density !== null && edges !== null) {
    const { shares } = curve.density;
    const tallest = Math.max(...shares, 1e-300);
    const stairs: [number, number][] = [[across(edges[0]), ground]];
    shares.forEach((share, k) => {
      const top = ground - (Math.max(0, share) / tallest) * FOOT * 0.85 * (ground - TOP);
      stairs.push([across(edges[k]), top], [across(edges[k + 1]), top]);
    });
    stairs.push([across(edges[edges.length - 1]), ground]);
    shape(drawing, "polygon", "foot", { points: pointsOf(stairs) });
  }
  if (curve.lower !== null && curve.upper !== null) {
    const { lower, upper } = curve;
    const above = x.map((at, k): [number, number] => [across(at), up(upper[k])]);
    const below = x.map((at, k): [number, number] => [across(at), up(lower[k])]).reverse();
    shape(drawing, "polygon", "band", { points: pointsOf([...above, ...below]) });
  }
  shape(drawing, "polyline", "line", { points: pointsOf(x.map((at, k) => [across(at), up(curve.y[k])])) });
  if (typeof value === "number" && value >= first && value <= last) {
    shape(drawing, "line", "mark", { x1: across(value), x2: across(value), y1: TOP, y2: ground });
    shape(drawing, "circle", "mark", { cx: across(value), cy: up(interpolated(value, x, curve.y)), r: 4.5 });
  }
  hoverStrips(drawing, curve, x, across, { output, level });
  for (const tick of ticks([first, last], 5)) shape(drawing, "text", "tick middle", { x: across(tick), y: LINE_HEIGHT - 6 }, level(tick));
  return drawing;
}

/** Strips that tell the curve's values where a pointer rests. */
function hoverStrips(drawing: SVGSVGElement, curve: DrawnCurve, x: readonly number[], across: Scale, writers: Writers): void {
  const count = Math.min(x.length, MOST_HOVERED);
  const chosen = [...new Set(Array.from({ length: count }, (_, k) => (count === 1 ? 0 : Math.trunc((k * (x.length - 1)) / (count - 1)))))];
  const middles = chosen.map((j) => across(x[j]));
  chosen.forEach((j, k) => {
    const left = k === 0 ? middles[0] - 6 : (middles[k - 1] + middles[k]) / 2;
    const right = k === chosen.length - 1 ? middles[k] + 6 : (middles[k] + middles[k + 1]) / 2;
    rectangle(drawing, "hover", left, TOP, right - left, LINE_HEIGHT - BOTTOM - TOP, told(curve, j, writers));
  });
}

function levelsDrawing(curve: DrawnCurve, value: Level | null, description: string, writers: Writers): SVGSVGElement {
  const height = TOP + ROW * curve.x.length + BOTTOM;
  const limits = curveLimits(curve);
  const across = scale(limits, NAMES + 8, WIDTH - RIGHT);
  const drawing = groundOf(height, description);
  for (const tick of ticks(limits, 3)) {
    shape(drawing, "line", "grid", { x1: across(tick), x2: across(tick), y1: TOP, y2: height - BOTTOM });
    shape(drawing, "text", "tick middle", { x: across(tick), y: height - 6 }, writers.output(tick));
  }
  const tallest = Math.max(...(curve.density?.shares ?? []), 1e-300);
  curve.x.forEach((name, row) => {
    const y = TOP + ROW * row;
    const isOwn = name === value;
    if (isOwn) rectangle(drawing, "own", 0, y, WIDTH, ROW);
    if (curve.density !== null) {
      const share = Math.max(0, curve.density.shares[row]) / tallest;
      rectangle(drawing, "foot", NAMES + 8, y + ROW - 5, share * (WIDTH - RIGHT - NAMES - 8), 3);
    }
    if (curve.lower !== null && curve.upper !== null) {
      const [left, right] = [across(curve.lower[row]), across(curve.upper[row])];
      rectangle(drawing, "band", left, y + ROW / 2 - 4, Math.max(right - left, 0.5), 7);
    }
    shape(drawing, "circle", isOwn ? "mark" : "dot", { cx: across(curve.y[row]), cy: y + ROW / 2, r: 3.5 });
    shape(drawing, "text", "name", { x: NAMES, y: y + ROW / 2 + 4 }, shortened(writers.level(name), LONGEST_NAME));
    rectangle(drawing, "hover", 0, y, WIDTH, ROW, told(curve, row, writers));
  });
  return drawing;
}

/** Reasons as bars on one scale, for the style sheet's `.bars`. */
export function barsDrawing(bars: readonly LetterBar[], giveOrTake: (amount: string) => string): HTMLElement {
  const box = document.createElement("div");
  box.className = "bars";
  for (const bar of bars) {
    const words = element("div", "bar-words", [element("span", "", bar.text), sizeOf(bar.reason.amount, bar.reason.giveOrTake, giveOrTake)]);
    const pale = bar.reason.giveOrTake && !bar.reason.certain ? " pale" : "";
    const filled = placed(element("i", bar.side + pale), bar.start, bar.width);
    const track = element("div", "track", [filled, placed(element("s", ""), bar.zero)]);
    if (bar.band !== null) track.append(placed(element("u", ""), ...bar.band));
    box.append(element("div", "bar", [words, track]));
  }
  return box;
}

/** The size of a reason, give or take its noise. */
export function sizeOf(amount: string, give: string, giveOrTake: (amount: string) => string): HTMLElement {
  const size = element("span", "size", amount);
  if (give) size.append(" ", element("small", "", giveOrTake(give)));
  return size;
}

/** An element with a class, and texts or elements in it. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  kind = "",
  content: string | readonly (Node | string)[] = [],
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  if (kind) made.className = kind.trim();
  made.append(...(typeof content === "string" ? [content] : content));
  return made;
}

function placed(made: HTMLElement, left: number, width?: number): HTMLElement {
  made.style.left = `${left.toFixed(2)}%`;
  if (width !== undefined) made.style.width = `${width.toFixed(2)}%`;
  return made;
}

// --- numbers -------------------------------------------------------------------------------------------------------------

/** Round numbers between two ends, at most about so many. */
export function ticks([low, high]: readonly [number, number], most: number): number[] {
  const span = high - low;
  if (!(Number.isFinite(span) && span > 0)) return [low];
  const rough = span / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => power * factor >= rough * 0.999)!;
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, k) => Number(((first + k) * step).toFixed(12)));
}

/** The value of a curve over numbers between its points. */
export function interpolated(value: number, x: readonly number[], y: readonly number[]): number {
  const right = x.findIndex((at) => at >= value);
  if (right <= 0) return right === 0 ? y[0] : y[y.length - 1];
  const share = (value - x[right - 1]) / (x[right] - x[right - 1]);
  return y[right - 1] + share * (y[right] - y[right - 1]);
}

function curveLimits(curve: DrawnCurve): [number, number] {
  const ends = [...curve.y, ...(curve.lower ?? []), ...(curve.upper ?? [])];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const room = 0.05 * (high - low) || 0.05 * Math.abs(high) || 1;
  return [low - room, high + room];
}

/** The curve over its levels with the largest shares, in their own order, and always over the person's own. */
function mostCommonLevels(curve: DrawnCurve, own: Level | null): DrawnCurve {
  if (!curve.categorical || curve.x.length <= MOST_LEVELS || curve.density === null) return curve;
  const { shares } = curve.density;
  const byShare = (a: number, b: number): number => Number(curve.x[a] !== own) - Number(curve.x[b] !== own) || shares[b] - shares[a];
  const kept = [...curve.x.keys()].sort(byShare).slice(0, MOST_LEVELS).sort((a, b) => a - b);
  const some = (numbers: readonly number[]): number[] => kept.map((j) => numbers[j]);
  return {
    categorical: true,
    x: kept.map((j) => curve.x[j]),
    y: some(curve.y),
    lower: curve.lower && some(curve.lower),
    upper: curve.upper && some(curve.upper),
    density: { edges: null, shares: some(shares) },
  };
}

function told(curve: DrawnCurve, j: number, { output, level }: Writers): string {
  const band = curve.lower === null || curve.upper === null ? "" : ` ± ${output((curve.upper[j] - curve.lower[j]) / 2)}`;
  return `${level(curve.x[j])}: ${output(curve.y[j])}${band}`;
}

function shortened(text: string, most: number): string {
  const letters = [...text];
  if (letters.length <= most) return text;
  const tail = Math.floor(most / 3);
  return `${letters.slice(0, most - tail - 1).join("")}…${letters.slice(-tail).join("")}`;
}

function scale([low, high]: readonly [number, number], start: number, stop: number): Scale {
  const factor = high > low ? (stop - start) / (high - low) : 0;
  return (value) => start + (value - low) * factor;
}

// --- elements ------------------------------------------------------------------------------------------------------------

function groundOf(height: number, description: string): SVGSVGElement {
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", description);
  return drawing;
}

function shape(drawing: SVGSVGElement, tag: string, kind: string, at: Readonly<Record<string, number | string>>, text = "", title = ""): void {
  const made = document.createElementNS(SVG, tag);
  made.setAttribute("class", kind);
  for (const [name, value] of Object.entries(at)) made.setAttribute(name, typeof value === "number" ? value.toFixed(1) : value);
  if (title) {
    const words = document.createElementNS(SVG, "title");
    words.textContent = title;
    made.append(words);
  }
  if (text) made.append(text);
  drawing.append(made);
}

function rectangle(drawing: SVGSVGElement, kind: string, x: number, y: number, width: number, height: number, title = ""): void {
  shape(drawing, "rect", kind, { x, y, width: Math.max(width, 0), height: Math.max(height, 0) }, "", title);
}

function pointsOf(places: readonly (readonly [number, number])[]): string {
  return places.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
}
