/** Least squares on 0/1 columns that may repeat each other: the solution of smallest norm, from sums of products alone. */

/** Of the largest diagonal entry: what is left of a column that others make up is rounding. */
const RANK = 1e-9;

/**
 * The pseudo-inverse (n, n) of a symmetric, positive semi-definite matrix (n, n), row after row.
 *
 * Columns that others make up are found by Cholesky's factorisation with pivots. With B the inverse of the rest, filled up
 * with zeros, and Q the projection on what is orthogonal to the null space, the pseudo-inverse is Q B Q.
 */
export function pseudoInverse(given: Float64Array, n: number): Float64Array {
  const [factor, pivots, rank] = pivotedCholesky(given, n);
  const inner = inverseOf(factor, n, rank);
  const made = new Float64Array(n * n);
  for (let i = 0; i < rank; i++) for (let j = 0; j < rank; j++) made[pivots[i] * n + pivots[j]] = inner[i * rank + j];
  const nulls = nullVectors(given, n, pivots, inner, rank);
  for (const vector of orthonormal(nulls)) projectOut(made, n, vector);
  return made;
}

/** L with L L' = the matrix in the order of the pivots; (n, rank) in the first columns of (n, n). */
function pivotedCholesky(given: Float64Array, n: number): [Float64Array, Int32Array, number] {
  const factor = new Float64Array(n * n);
  const pivots = Int32Array.from({ length: n }, (_, k) => k);
  const left = Float64Array.from({ length: n }, (_, k) => given[k * n + k]);
  const least = RANK * left.reduce((a, b) => Math.max(a, b), 0);
  for (let k = 0; k < n; k++) {
    let best = k;
    for (let i = k + 1; i < n; i++) if (left[pivots[i]] > left[pivots[best]]) best = i;
    if (!(left[pivots[best]] > least)) return [factor, pivots, k];
    [pivots[k], pivots[best]] = [pivots[best], pivots[k]];
    for (let j = 0; j < k; j++) [factor[k * n + j], factor[best * n + j]] = [factor[best * n + j], factor[k * n + j]];
    const root = Math.sqrt(left[pivots[k]]);
    factor[k * n + k] = root;
    for (let i = k + 1; i < n; i++) {
      let rest = given[pivots[i] * n + pivots[k]];
      for (let j = 0; j < k; j++) rest -= factor[i * n + j] * factor[k * n + j];
      factor[i * n + k] = rest / root;
      left[pivots[i]] -= factor[i * n + k] ** 2;
    }
  }
  return [factor, pivots, n];
}

/** The inverse (rank, rank) of L L', L the leading part of a factor (n, n). */
function inverseOf(factor: Float64Array, n: number, rank: number): Float64Array {
  const lower = new Float64Array(rank * rank); // of L itself
  for (let c = 0; c < rank; c++) {
    for (let r = c; r < rank; r++) {
      let rest = r === c ? 1 : 0;
      for (let k = c; k < r; k++) rest -= factor[r * n + k] * lower[k * rank + c];
      lower[r * rank + c] = rest / factor[r * n + r];
    }
  }
  const made = new Float64Array(rank * rank);
  for (let k = 0; k < rank; k++) {
    for (let i = 0; i <= k; i++) {
      const scale = lower[k * rank + i];
      if (scale !== 0) for (let j = 0; j <= k; j++) made[i * rank + j] += scale * lower[k * rank + j];
    }
  }
  return made;
}

/** For each column that others make up, the combination that is zero. */
function nullVectors(given: Float64Array, n: number, pivots: Int32Array, inner: Float64Array, rank: number): Float64Array[] {
  const found: Float64Array[] = [];
  for (let c = rank; c < n; c++) {
    const vector = new Float64Array(n);
    vector[pivots[c]] = 1;
    for (let i = 0; i < rank; i++) {
      let sum = 0;
      for (let j = 0; j < rank; j++) sum += inner[i * rank + j] * given[pivots[j] * n + pivots[c]];
      vector[pivots[i]] = -sum;
    }
    found.push(vector);
  }
  return found;
}

/** An orthonormal basis of what independent vectors span (Gram and Schmidt, twice for the sake of rounding). */
function orthonormal(vectors: readonly Float64Array[]): Float64Array[] {
  const made: Float64Array[] = [];
  for (const vector of vectors) {
    for (let twice = 0; twice < 2; twice++) {
      for (const other of made) {
        const along = dot(vector, other);
        for (let k = 0; k < vector.length; k++) vector[k] -= along * other[k];
      }
    }
    const length = Math.sqrt(dot(vector, vector));
    made.push(vector.map((number) => number / length));
  }
  return made;
}

/** M becomes (I - v v') M (I - v v'), for a symmetric M and a unit vector v. */
function projectOut(of: Float64Array, n: number, vector: Float64Array): void {
  const times = new Float64Array(n);
  for (let i = 0; i < n; i++) times[i] = dot(of.subarray(i * n, (i + 1) * n), vector);
  const both = dot(times, vector);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) of[i * n + j] += both * vector[i] * vector[j] - times[i] * vector[j] - vector[i] * times[j];
  }
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
}
