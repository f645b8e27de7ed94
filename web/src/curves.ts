/** Curves of a pane's report, and where a person stands on them (Python: `results.curve`, `pane.person.standing_on`). */
import { DamagedFile } from "./archive";
import type { Part } from "./rows";
import { isObject, type Column, type Level } from "./schema";

export interface Curve {
  readonly name: string;
  /** "partial dependence", or "accumulated effects". */
  readonly kind: string;
  /** Rising numbers, or levels. */
  readonly x: Float64Array | readonly Level[];
  readonly y: Float64Array;
  /** Half of the band's width at each point; null where there is no band. */
  readonly halfWidths: Float64Array | null;
  readonly claim: string;
  readonly notes: readonly string[];
}

export interface Standing {
  readonly value: number;
  readonly halfWidth: number | null;
}

/** The curves of a report by column: partial dependence, or accumulated effects where there is none. */
export function curvesOf(report: Part): Map<string, Curve> {
  const effects = report.fields.pdp ?? report.fields.ale;
  const kind = report.fields.pdp === null || report.fields.pdp === undefined ? "ale" : "pdp";
  const made = new Map<string, Curve>();
  if (!isObject(effects) || !isObject(effects.curves)) return made;
  for (const [name, fields] of Object.entries(effects.curves)) {
    if (!isObject(fields)) throw new DamagedFile(`the curve '${name}' of ${kind} is no object`);
    const numbers = (field: string): Float64Array => report.numbers(fields[field], field).data;
    const y = numbers("y");
    const hasBand = fields.lower !== null && fields.upper !== null;
    const [lower, upper] = hasBand ? [numbers("lower"), numbers("upper")] : [y, y];
    made.set(name, {
      name,
      kind: String(fields.kind),
      x: fields.categorical === true ? levelsOf(fields.x) : numbers("x"),
      y,
      halfWidths: hasBand ? upper.map((high, k) => (high - lower[k]) / 2) : null,
      claim: String(fields.band_claim),
      notes: Array.isArray(fields.notes) ? fields.notes.map(String) : [],
    });
  }
  return made;
}

/** Where somebody with this raw value stands; null at a code, which no curve knows. */
export function standingOn(curve: Curve, column: Column, raw: number): Standing | null {
  if (column.kind === "numeric" && column.codes.includes(raw)) return null;
  const { x, y, halfWidths } = curve;
  if (x instanceof Float64Array) {
    return { value: interpolated(x, y, raw), halfWidth: halfWidths && interpolated(x, halfWidths, raw) };
  }
  const place = x.indexOf(column.kind === "categorical" ? column.levels[raw] : raw);
  return place < 0 ? null : { value: y[place], halfWidth: halfWidths && halfWidths[place] };
}

/** Linear between points, flat beyond the ends; as numpy.interp. */
export function interpolated(x: Float64Array, y: Float64Array, at: number): number {
  const last = x.length - 1;
  if (at <= x[0]) return y[0];
  if (at >= x[last]) return y[last];
  let right = 1;
  while (x[right] <= at) right++;
  const slope = (y[right] - y[right - 1]) / (x[right] - x[right - 1]);
  return slope * (at - x[right - 1]) + y[right - 1];
}

function levelsOf(stored: unknown): Level[] {
  const levels = isObject(stored) ? stored.levels : stored; // numbers that are levels are marked as such
  if (!Array.isArray(levels)) throw new DamagedFile("the levels of a curve are no list");
  return levels as Level[];
}
