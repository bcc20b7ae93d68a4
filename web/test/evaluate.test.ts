import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { causesOf } from "../src/causes.ts";
import { Density } from "../src/density.ts";
import { explain } from "../src/evaluate.ts";
import { barsOf } from "../src/histogram.ts";
import { interact, makeLine, pureOf } from "../src/interaction.ts";
import { buildModel, FEW_VALUES, locate, rowValues } from "../src/model.ts";
import type { Payload } from "../src/payload.ts";
import { isCurve, shapeOf } from "../src/shape.ts";

interface Case {
  name: string;
  tolerance: number;
  payload: Payload;
  values: number[][][];
  lower: number[][][];
  upper: number[][][];
  own: number[][][];
  score: number[][];
  prediction: number[][];
  parts: number[][][][];
  inner: (number[][] | null)[];
  labels: string[][];
  bars: (number[][] | null)[];
  panels: (number | null)[] | null;
  density: number[][];
  interaction: { numbers: ((number | null)[] | null)[]; contributions: number[][][]; pure: number[][] } | null;
}

const golden: Case[] = JSON.parse(readFileSync(join(process.env.NAE_WEB ?? ".", "golden.json"), "ascii"));

/** Fail unless both lists are equal to `tolerance`, of which large numbers have more. */
export function assertClose(found: ArrayLike<number>, expected: number[], tolerance: number, what: string): void {
  assert.equal(found.length, expected.length, what);
  expected.forEach((value, at) => {
    const allowed = tolerance * Math.max(1, Math.abs(value));
    assert.ok(Math.abs(found[at] - value) <= allowed, `${what}[${at}]: ${found[at]} is not ${value}`);
  });
}

test("the check for closeness can fail", () => {
  assert.throws(() => assertClose([1], [1.001], 1e-6, "x"), /x\[0\]: 1 is not 1.001/);
  assert.throws(() => assertClose([Number.NaN], [1], 1e-6, "x"));
});

for (const one of golden) {
  const model = buildModel(one.payload);
  const rows = one.payload.rows.number.map((_, row) => locate(model, rowValues(model, row)));

  test(`contributions, bounds, own effects and predictions are Python's: ${one.name}`, () => {
    rows.forEach((cells, row) => {
      const found = explain(model, cells);
      for (const key of ["values", "lower", "upper", "own"] as const) {
        assertClose(found[key], one[key][row].flat(), one.tolerance, `${key} of row ${row}`);
      }
      assertClose(found.score, one.score[row], one.tolerance, `score of row ${row}`);
      assertClose(found.prediction, one.prediction[row], one.tolerance, `prediction of row ${row}`);
    });
  });

  test(`the band of most effects is that of the plots: ${one.name}`, () => {
    one.inner.forEach((band, i) => {
      if (!band) return;
      const points = shapeOf(model, model.features[i], 0).points.filter((point) => point.role === "value");
      const found = [points.map((point) => point.low), points.map((point) => point.high)];
      band.forEach((expected, side) => {
        assertClose(found[side], expected, 1e-6, `side ${side} of feature ${i}`);
      });
    });
  });

  test(`labels are Python's: ${one.name}`, () => {
    // 1e-5 and 0.00001 are one number.
    const plain = (label: string) => (Number.isNaN(Number(label)) ? label : Number(label));
    model.features.forEach((feature, i) => {
      assert.deepEqual(feature.labels.map(plain), one.labels[i].map(plain));
    });
  });

  test(`values have the bars of the plots: ${one.name}`, () => {
    one.bars.forEach((bars, i) => {
      const feature = model.features[i];
      assert.equal(feature.isListed && isCurve(feature), bars !== null, feature.name);
      if (!bars) return;
      const points = shapeOf(model, feature, 0).points.filter((point) => point.role === "value");
      const found = barsOf(points, [0, 1], true);
      assertClose(
        found.flatMap((bar) => [bar.left, bar.right, bar.height]),
        bars.flat(),
        1e-6,
        `bars of ${feature.name}`,
      );
    });
  });

  test(`a third feature is held at values that occur: ${one.name}`, { skip: !one.panels }, () => {
    const found = interact(model, [1, 2, 0], () => 7, 0);
    assert.deepEqual(found.lines[2].values, one.panels);
  });

  test(`where rows lie is what Python says: ${one.name}`, () => {
    const density = new Density(model);
    one.payload.density?.pairs.forEach((pair, n) => {
      const lines = pair.map((i) => makeLine(model, model.features[i], FEW_VALUES));
      const expected = one.density[n].map((level) => level / 3);
      assertClose(density.over(lines), expected, 1e-12, `density of ${pair}`);
    });
  });

  test(`the causes of every context shift are Python's: ${one.name}`, () => {
    rows.forEach((cells, row) => {
      const found = explain(model, cells);
      for (let i = 0; i < model.nFeatures; i++) {
        for (let o = 0; o < model.nOutputs; o++) {
          const parts = causesOf(model, cells, found, i, o);
          assertClose(parts, one.parts[row][i][o], 20 * one.tolerance, `parts of row ${row}, feature ${i}`);
        }
      }
    });
  });

  test(`the map of a pair is Python's: ${one.name}`, { skip: !one.interaction }, () => {
    if (!one.interaction) return;
    const found = interact(model, [0, 1], () => 7, 0);
    one.interaction.numbers.forEach((numbers, axis) => {
      if (!numbers) return;
      const known = numbers.filter((value) => value !== null);
      assertClose(
        found.lines[axis].values.filter((v) => v !== null).map(Number),
        known,
        1e-6,
        `values of axis ${axis}`,
      );
    });
    found.parts.forEach((part, at) => {
      assertClose(part, one.interaction?.contributions[at].flat() ?? [], one.tolerance, `contribution ${at}`);
    });
    assertClose(pureOf(found), one.interaction.pure.flat(), 10 * one.tolerance, "pure");
  });
}
