/** Where rows lie in a map: how much of a colour to show at each point. Written by nae.report.density. */

import { type Line, makeLine } from "./interaction.ts";
import { FEW_VALUES, type Model } from "./model.ts";
import { bytesOf } from "./payload.ts";

const STEPS = 3;

/** Shares from 0 (no row is near) to 1 (enough are) over the places of two lines, the second's innermost. */
interface Plane {
  lines: [Line, Line];
  shares: Float64Array;
}

/** How the rows lie over pairs of features. */
export class Density {
  private readonly lines = new Map<number, Line>();
  private readonly planes = new Map<string, Plane>();

  constructor(private readonly model: Model) {
    const { density } = model.payload;
    if (!density) return;
    const bytes = new Uint8Array(bytesOf(density.levels));
    let from = 0;
    for (const [i, j] of density.pairs) {
      const lines: [Line, Line] = [this.line(i), this.line(j)];
      const shares = new Float64Array(lines[0].position.length * lines[1].position.length);
      for (let at = 0; at < shares.length; at++) {
        shares[at] = ((bytes[(from + at) >> 2] >> (2 * ((from + at) & 3))) & 3) / STEPS;
      }
      from += shares.length;
      this.planes.set(`${i},${j}`, { lines, shares });
    }
  }

  /** Whether it is known where rows lie along every pair of some features. */
  knows(chosen: number[]): boolean {
    return chosen.every((i, n) => chosen.slice(n + 1).every((j) => this.planes.has(keyOf(i, j))));
  }

  /** Return how near rows are to every point of a map, the last line's values innermost; 1 where it is not known. */
  over(lines: Line[]): Float64Array {
    const sizes = lines.map((line) => line.position.length);
    const out = new Float64Array(sizes.reduce((product, size) => product * size, 1)).fill(1);
    const inner = sizes.map((_, axis) => sizes.slice(axis + 1).reduce((product, size) => product * size, 1));
    lines.forEach((first, a) => {
      lines.slice(a + 1).forEach((second, n) => {
        const plane = this.between(first, second);
        if (!plane) return;
        const b = a + 1 + n;
        for (let at = 0; at < out.length; at++) {
          const x = Math.floor(at / inner[a]) % sizes[a];
          const y = Math.floor(at / inner[b]) % sizes[b];
          // Three values occur together only where each two of them do.
          out[at] = Math.min(out[at], plane[x * sizes[b] + y]);
        }
      });
    });
    return out;
  }

  private line(i: number): Line {
    let found = this.lines.get(i);
    if (!found) {
      found = makeLine(this.model, this.model.features[i], FEW_VALUES);
      this.lines.set(i, found);
    }
    return found;
  }

  private between(first: Line, second: Line): Float64Array | null {
    const [i, j] = [first.feature.at, second.feature.at];
    const plane = this.planes.get(keyOf(i, j));
    if (!plane) return null;
    const [one, other] = i < j ? [first, second] : [second, first];
    const [rows, columns] = [weightsOf(one, plane.lines[0]), weightsOf(other, plane.lines[1])];
    const nColumns = plane.lines[1].position.length;
    const out = new Float64Array(first.position.length * second.position.length);
    rows.forEach((row, x) => {
      columns.forEach((column, y) => {
        let share = 0;
        for (const [a, p] of row) for (const [b, q] of column) share += p * q * plane.shares[a * nColumns + b];
        out[i < j ? x * columns.length + y : y * rows.length + x] = share;
      });
    });
    return out;
  }
}

function keyOf(i: number, j: number): string {
  return i < j ? `${i},${j}` : `${j},${i}`;
}

/** Return for every value of a line the places of a coarser one that speak for it, and how much each does. */
function weightsOf(line: Line, coarse: Line): [number, number][][] {
  const { feature } = line;
  return line.position.map((position): [number, number][] => {
    const exact = coarse.position.indexOf(position);
    if (exact >= 0) return [[exact, 1]];
    if (feature.kind !== "number" || position >= feature.nValues) return [];
    const known = coarse.position.filter((one) => one < feature.nValues);
    const after = known.findIndex((one) => one > position);
    if (after <= 0) return [[after < 0 ? known.length - 1 : 0, 1]];
    const part = (position - known[after - 1]) / (known[after] - known[after - 1]);
    return [
      [after - 1, 1 - part],
      [after, part],
    ];
  });
}
