/** What all rooms of the live page have in common. Names and numbers are those of the Python package. */

/** Rows, one after the other: numbers, and categories as the index of their level, in the schema's order (Python: "raw"). */
export interface Matrix {
  readonly data: Float64Array;
  readonly rows: number;
  readonly columns: number;
}

/** Outputs of the model for raw rows, one number each, inside its declared range. */
export type Predict = (rows: Matrix) => Promise<Float64Array>;

export function matrix(rows: number, columns: number, data: Float64Array = new Float64Array(rows * columns)): Matrix {
  if (data.length !== rows * columns) throw new Error(`a matrix of ${rows} x ${columns} has ${data.length} numbers`);
  return { data, rows, columns };
}

export function rowOf(from: Matrix, row: number): Float64Array {
  return from.data.subarray(row * from.columns, (row + 1) * from.columns);
}
