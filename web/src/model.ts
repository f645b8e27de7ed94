/**
 * An ONNX graph as `Predict` (Python: `model.onnx_graphs`, `model.feeds`).
 *
 * A graph takes one matrix (of features, or of values), or one tensor of numbers or texts for each column. Which, is in the
 * prepared file; of which type, the graph says. Outputs are clipped to the declared range, as in Python.
 */
import * as ort from "onnxruntime-web/wasm";
import { digest } from "./archive";
import type { ModelFacts } from "./rows";
import { levelText, policyValue, type Schema } from "./schema";
import { matrix, type Matrix, type Predict } from "./types";

/** A model that cannot be opened or asked, in a sentence. */
export class ModelError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ModelError";
  }
}

/** Rows of a call: memory stays small, and the runtime keeps its buffers. */
const CALL_ROWS = 4096;

/** Where the runtime's .wasm and .mjs lie: a folder (ending in /), or both addresses. Call it before the first model. */
export function useRuntime(where: string | { readonly wasm: string; readonly mjs: string }): void {
  ort.env.wasm.wasmPaths = where;
}

/** Opens a graph; `facts` says what it is given. A graph that is not the one that was prepared is refused. */
export async function openModel(content: Uint8Array, facts: ModelFacts, schema: Schema): Promise<Predict> {
  if ((await digest(content)) !== facts.sha256) throw new ModelError(`this is not the model ${facts.name} that the page was made for; it may be damaged`);
  ort.env.wasm.numThreads = 1; // more would need headers that a plain folder of files does not send
  ort.env.logLevel = "error";
  let session: ort.InferenceSession;
  try {
    session = await ort.InferenceSession.create(content, { executionProviders: ["wasm"], graphOptimizationLevel: "all" });
  } catch (error) {
    throw new ModelError(`${facts.name} cannot be opened in this browser: ${error instanceof Error ? error.message : String(error)}`);
  }
  const output = outputOf(session, facts.name);
  const inputs = inputsOf(session, facts, schema);
  const ask = async (rows: Matrix): Promise<Float64Array> => {
    const feeds: Record<string, ort.Tensor> = {};
    for (const [name, build] of inputs) feeds[name] = build(rows);
    const result = (await session.run(feeds, [output]))[output];
    return clipped(result, rows.rows, facts);
  };
  return async (rows) => {
    if (rows.rows <= CALL_ROWS) return ask(rows);
    const made = new Float64Array(rows.rows);
    for (let start = 0; start < rows.rows; start += CALL_ROWS) {
      const stop = Math.min(start + CALL_ROWS, rows.rows);
      const some = matrix(stop - start, rows.columns, rows.data.subarray(start * rows.columns, stop * rows.columns));
      made.set(await ask(some), start);
    }
    return made;
  };
}

/** The only output, or the one that is plainly the probabilities. */
function outputOf(session: ort.InferenceSession, name: string): string {
  const outputs = session.outputNames;
  const likely = outputs.filter((output) => output.toLowerCase().includes("prob"));
  if (likely.length !== 1 && outputs.length !== 1) {
    throw new ModelError(`${name} has the outputs ${outputs.join(", ")} and none is plainly the probabilities; export it with one output`);
  }
  const output = likely[0] ?? outputs[0];
  const described = session.outputMetadata[outputs.indexOf(output)];
  if (!described.isTensor) throw new ModelError(`${name} returns dictionaries, which no browser's runtime gives out; export it with options={'zipmap': False}`);
  return output;
}

type Build = (rows: Matrix) => ort.Tensor;

/** By name of an input, how it is made from raw rows. */
function inputsOf(session: ort.InferenceSession, facts: ModelFacts, schema: Schema): [string, Build][] {
  const types = session.inputMetadata.map((described) => (described.isTensor ? described.type : "float32"));
  if (facts.kind === "columns") {
    const names = facts.names ?? facts.columns.map((column) => schema.names[column]);
    return session.inputNames.map((input, k) => {
      const place = names.indexOf(input);
      if (place < 0) throw new ModelError(`${facts.name} takes '${input}', which the page does not know`);
      return [input, (rows) => columnTensor(rows, schema, facts.columns[place], types[k])];
    });
  }
  if (session.inputNames.length !== 1) throw new ModelError(`${facts.name} takes ${session.inputNames.length} inputs, and one matrix was prepared for it`);
  return [[session.inputNames[0], (rows) => matrixTensor(rows, schema, facts, types[0])]];
}

function matrixTensor(rows: Matrix, schema: Schema, facts: ModelFacts, type: string): ort.Tensor {
  const isFeatures = facts.kind === "features";
  const given = isFeatures ? schema.features(rows) : schema.valuesForModels(rows).data;
  const offered = isFeatures ? schema.nFeatures : schema.nColumns;
  const taken = facts.columns;
  if (taken.length === offered && taken.every((column, k) => column === k)) return tensorOf(given, type, [rows.rows, offered]);
  const picked = new Float64Array(rows.rows * taken.length);
  for (let r = 0, at = 0; r < rows.rows; r++) for (const column of taken) picked[at++] = given[r * offered + column];
  return tensorOf(picked, type, [rows.rows, taken.length]);
}

/** One column in original units and levels, (rows, 1). */
function columnTensor(rows: Matrix, schema: Schema, column: number, type: string): ort.Tensor {
  const declared = schema.columns[column];
  const blank = declared.asNan ? policyValue(declared) : NaN;
  const shape = [rows.rows, 1];
  if (type === "string") {
    const texts = declared.kind === "categorical" ? declared.levels.map(levelText) : null;
    const made = new Array<string>(rows.rows);
    for (let r = 0, at = column; r < rows.rows; r++, at += rows.columns) {
      const raw = rows.data[at];
      made[r] = raw === blank ? "" : texts === null ? String(raw) : texts[raw];
    }
    return new ort.Tensor("string", made, shape);
  }
  const levels = declared.kind === "categorical" ? declared.levels.map(Number) : null;
  const made = new Float64Array(rows.rows);
  for (let r = 0, at = column; r < rows.rows; r++, at += rows.columns) {
    const raw = rows.data[at];
    made[r] = raw === blank ? NaN : levels === null ? raw : levels[raw];
  }
  return tensorOf(made, type, shape);
}

function tensorOf(numbers: Float64Array, type: string, shape: number[]): ort.Tensor {
  if (type === "float64") return new ort.Tensor("float64", numbers, shape);
  if (type === "int64") return new ort.Tensor("int64", BigInt64Array.from(numbers, (number) => BigInt(Math.trunc(number))), shape);
  if (type === "int32") return new ort.Tensor("int32", Int32Array.from(numbers), shape);
  if (type === "bool") return new ort.Tensor("bool", Uint8Array.from(numbers, (number) => Number(number !== 0)), shape);
  return new ort.Tensor("float32", Float32Array.from(numbers), shape);
}

/** The column of the output that is meant, clipped to the declared range. */
function clipped(result: ort.Tensor, nRows: number, facts: ModelFacts): Float64Array {
  const given = result.data as ArrayLike<number | bigint>;
  const width = given.length / nRows;
  // Python: the declared column; of one column that; of two columns of probabilities the second.
  const column = facts.column ?? (width === 2 ? 1 : 0);
  if (!Number.isInteger(width) || column >= width) throw new ModelError(`${facts.name} returns ${given.length} numbers for ${nRows} rows`);
  const [low, high] = facts.range;
  const made = new Float64Array(nRows);
  for (let r = 0; r < nRows; r++) {
    const output = Number(given[r * width + (width === 1 ? 0 : column)]);
    if (!Number.isFinite(output)) throw new ModelError(`${facts.name} returns no finite number for a point with some values of a background row`);
    made[r] = Math.min(Math.max(output, low), high);
  }
  return made;
}
