/** How many rows are where along a number, as bars whose tallest has height 1. */

import type { ShapePoint } from "./shape.ts";

export interface Bar {
  left: number;
  right: number;
  height: number;
}

const BINS = 48;

/** Return one bar per value where values are listed, otherwise a histogram of equal bins over a range. */
export function barsOf(points: ShapePoint[], range: [number, number], isListed: boolean): Bar[] {
  const bars = isListed || points.length < 2 ? valueBars(points, range) : binned(points, range);
  const most = Math.max(...bars.map((bar) => bar.height), 0) || 1;
  return bars.map((bar) => ({ ...bar, height: bar.height / most }));
}

function valueBars(points: ShapePoint[], [low, high]: [number, number]): Bar[] {
  let gap = points.length > 1 ? Number.POSITIVE_INFINITY : high - low;
  points.slice(1).forEach((point, n) => {
    gap = Math.min(gap, point.number - points[n].number);
  });
  return points
    .filter((point) => point.share > 0)
    .map(({ number, share }) => ({ left: number - 0.4 * gap, right: number + 0.4 * gap, height: share }));
}

/** A knot speaks for the values around it, so its rows are spread half-way to its neighbours. */
function binned(points: ShapePoint[], [low, high]: [number, number]): Bar[] {
  const last = points.length - 1;
  const edges = [
    points[0].number,
    ...points.slice(1).map((point, n) => (point.number + points[n].number) / 2),
    points[last].number,
  ];
  const mass = [0];
  for (const point of points) mass.push(mass[mass.length - 1] + point.share);
  const massBelow = (value: number): number => {
    const after = edges.findIndex((edge) => edge > value);
    if (after <= 0) return after < 0 ? mass[mass.length - 1] : 0;
    const part = (value - edges[after - 1]) / (edges[after] - edges[after - 1]);
    return mass[after - 1] + part * (mass[after] - mass[after - 1]);
  };
  const at = (n: number) => low + ((high - low) * n) / BINS;
  return Array.from({ length: BINS }, (_, n) => ({
    left: at(n),
    right: at(n + 1),
    height: massBelow(at(n + 1)) - massBelow(at(n)),
  }));
}
