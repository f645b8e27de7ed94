/** Which class a model puts a row in: a side of a threshold, a range of outputs, or the largest of several outputs. */
import type { Level } from "../schema";

export const OPPOSITE = "opposite";
/** A range of outputs; null is an open end. */
export type Desired = readonly [number | null, number | null];

/** Outputs are given row by row: `count` numbers for each. Mirrors `solve.counterfactual.classes`. */
export class Classes {
  constructor(
    /** How many outputs a row has: one, or one for each class. */
    readonly count: number,
    readonly labels: readonly Level[],
    readonly threshold: number,
    /** Of a range of outputs: the largest that is in it. */
    readonly highest: number | null = null,
  ) {}

  /** The outputs outside a range (class 0) and in it (class 1), within the range of the model's outputs. */
  between([low, high]: Desired, [least, most]: readonly [number, number]): Classes {
    const given = `desired is (${low ?? "None"}, ${high ?? "None"})`;
    if (this.count > 1 || (low === null && high === null)) {
      throw new Error(`${given}; give a pair (low, high) of outputs of one model; (500, null) is at least 500`);
    }
    for (const end of [low, high]) {
      if (end !== null && !(end >= least && end <= most)) throw new Error(`${given}; its ends must lie between ${least} and ${most}`);
    }
    if (low !== null && high !== null && low > high) throw new Error(`${given}; low must not be above high`);
    return new Classes(1, ["outside", "inside"], low ?? -Infinity, high ?? Infinity);
  }

  /** The class of each row; -1 where the model gave no number. */
  index(outputs: Float64Array): Int32Array {
    const made = new Int32Array(outputs.length / this.count);
    for (let r = 0; r < made.length; r++) {
      const own = outputs.subarray(r * this.count, (r + 1) * this.count);
      if (!own.every(Number.isFinite)) made[r] = -1;
      else made[r] = this.count === 1 ? Number(this.inside(own[0]) >= 0) : largest(own);
    }
    return made;
  }

  /** How far outputs are on the wanted class's side: positive inside it, minus infinity where there is no number. */
  margin(outputs: Float64Array, target: number): Float64Array {
    return Float64Array.from({ length: outputs.length / this.count }, (_, r) => {
      const own = outputs.subarray(r * this.count, (r + 1) * this.count);
      if (!own.every(Number.isFinite)) return -Infinity;
      if (this.count > 1) return own[target] - Math.max(...own.filter((_, k) => k !== target));
      const above = this.inside(own[0]);
      return target === 1 ? above : -above;
    });
  }

  /** The number of the class that somebody shall get to, who has this class and these outputs. */
  wanted(desired: Level, current: number, outputs: Float64Array): number {
    if (desired !== OPPOSITE || this.labels.includes(OPPOSITE)) return this.number(desired);
    if (this.count === 1) return 1 - current;
    return largest(outputs.map((output, k) => (k === current ? -Infinity : output))); // the model's second choice
  }

  /** The number of a class, by its label or (where labels are texts) by the number itself. */
  number(label: Level): number {
    const isText = typeof label === "string";
    const isSame = (known: Level): boolean => (typeof known === "string") === isText && (isText ? known === label : Number(known) === Number(label));
    const found = this.labels.findIndex(isSame);
    if (found >= 0) return found;
    const isNumbered = this.labels.some((known) => typeof known === "number");
    if ((this.count === 1 || !isNumbered) && typeof label === "number" && label in this.labels) return label;
    throw new Error(`desired_class is ${label}; choose 'opposite' or one of the classes ${this.labels.join(", ")}`);
  }

  /** How far a single output is over the threshold, or inside the range. */
  private inside(output: number): number {
    const above = output - this.threshold;
    return this.highest === null ? above : Math.min(above, this.highest - output);
  }
}

/** The place of the largest number, the first of equals. */
function largest(numbers: Float64Array): number {
  let best = 0;
  for (let k = 1; k < numbers.length; k++) if (numbers[k] > numbers[best]) best = k;
  return best;
}
