import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { causesOf } from "../src/causes.ts";
import { explain } from "../src/evaluate.ts";
import { interact, pureOf } from "../src/interaction.ts";
import { buildModel, locate, rowValues } from "../src/model.ts";
import type { Payload } from "../src/payload.ts";
import { shapeOf } from "../src/shape.ts";

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
  const rows = one.payload.rows.index.map((_, row) => locate(model, rowValues(model, row)));

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
    const found = interact(model, [0, 1], 7, 0);
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
