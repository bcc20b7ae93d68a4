import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { sideOf, type Tick, ticksOf } from "../src/axis.ts";
import { Density } from "../src/density.ts";
import { apart, valueText } from "../src/format.ts";
import { barsOf } from "../src/histogram.ts";
import { makeLine } from "../src/interaction.ts";
import { buildModel, type Model } from "../src/model.ts";
import { type ShapePoint, shapeOf } from "../src/shape.ts";

interface Case {
  name: string;
  payload: Parameters<typeof buildModel>[0];
}

const golden: Case[] = JSON.parse(readFileSync(join(process.env.NAE_WEB ?? ".", "golden.json"), "ascii"));
const few = golden.find((one) => one.name === "few values");
if (!few) throw new Error("The golden tables must hold the case of few values.");
const model: Model = buildModel(few.payload);
const names = model.features.map((feature) => feature.name);
const lineOf = (name: string, resolution = 44) => makeLine(model, model.features[names.indexOf(name)], resolution);

const WIDTH = 600;
const widthOf = (text: string) => (text.length * 7) / WIDTH;

function assertApart(ticks: Tick[]): void {
  ticks.slice(1).forEach(({ at, text }, n) => {
    assert.ok(at - ticks[n].at >= (widthOf(text) + widthOf(ticks[n].text)) / 2, `${ticks[n].text} overprints ${text}`);
  });
}

test("the check for overprinted ticks can fail", () => {
  assert.throws(() => assertApart([{ at: 0, text: "100" }, { at: 0.01, text: "200" }]), /100 overprints 200/); // biome-ignore format: one line
});

test("every value of few is written where it is, however far apart they are", () => {
  const side = sideOf(lineOf("age"));
  const ticks = ticksOf(side, 40, widthOf, 20);
  assert.deepEqual(
    ticks.map((tick) => Number(tick.text)),
    Array.from(model.features[names.indexOf("age")].knots),
  );
  ticks.forEach((tick, n) => {
    assert.ok(Math.abs(tick.at - (side.place(side.line.values[n]) ?? 2)) < 1e-12, tick.text);
  });
});

test("where there is no room for all values, every second or third is written", () => {
  const ticks = ticksOf(sideOf(lineOf("age")), 40, (text) => 6 * widthOf(text), 20);
  assert.deepEqual(
    ticks.map((tick) => tick.text),
    ["1", "14", "90", "120", "360"],
  );
});

test("a number of many values is to scale, its ticks too, and missing stands apart", () => {
  const side = sideOf(lineOf("temp"));
  const ticks = ticksOf(side, 40, widthOf, 20);
  assertApart(ticks);
  assert.equal(ticks.at(-1)?.text, "missing");
  const round = ticks.slice(0, -1);
  assert.ok(round.length > 3);
  const per = round.map(({ at }, n) => (n ? at - round[n - 1].at : at));
  for (const step of per.slice(2)) assert.ok(Math.abs(step - per[1]) < 1e-9);
  const [from] = side.spans.at(-1) ?? [0];
  assert.ok(from > side.spans[side.spans.length - 2][1] + 0.01);
  assert.equal(side.place(null), 0.97);
});

test("colours are gone where no row lies: at a working Sunday", () => {
  const [day, working] = [lineOf("weekday"), lineOf("workingday")];
  const near = new Density(model).over([day, working]);
  day.values.forEach((value, n) => {
    assert.deepEqual(Array.from(near.slice(2 * n, 2 * n + 2)), value === 0 || value === 6 ? [1, 0] : [0, 1]);
  });
  const turned = new Density(model).over([working, day]);
  assert.equal(turned[7 + 0], 0);
  const three = new Density(model).over([lineOf("temp", 20), day, working]);
  assert.equal(three[0 * 14 + 0 * 2 + 1], 0);
});

test("a working Sunday is not known to have no row when the page does not know where rows lie", () => {
  const blind = buildModel({ ...few.payload, density: null });
  const density = new Density(blind);
  assert.ok(!density.knows([0, 1]));
  assert.ok(density.over([lineOf("weekday"), lineOf("workingday")]).every((share) => share === 1));
  assert.ok(new Density(model).knows([0, 1, 3]));
});

test("weekdays have one bar each, all of one height", () => {
  const points = shapeOf(model, model.features[0], 0).points.filter((point) => point.role === "value");
  const bars = barsOf(points, [-0.5, 6.5], true);
  assert.equal(bars.length, 7);
  for (const bar of bars) assert.equal(bar.height, 1);
});

test("a number of many values has bars that hold the rows between its knots", () => {
  const point = (number: number, share: number) => ({ number, share }) as ShapePoint;
  const points = Array.from({ length: 61 }, (_, n) => point(n / 60, n % 60 ? 1 / 60 : 1 / 120));
  const bars = barsOf(points, [0, 1], false);
  for (const bar of bars) assert.ok(Math.abs(bar.height - 1) < 1e-6, String(bar.height)); // no tall ends
});

test("different numbers are written differently", () => {
  assert.deepEqual(apart([100.001, 100.002]), ["100.001", "100.002"]);
  assert.deepEqual(apart([0.5, 1]), ["0.5", "1"]);
});

test("listed values that differ by little are written with as many digits as set them apart", () => {
  const at = names.indexOf("age");
  const knots = model.tables.knots.map((knot) => 1000 + knot / 1000);
  const packed = { type: "f64" as const, data: Buffer.from(knots.buffer).toString("base64") };
  const features = few.payload.features.map((one) => ({ ...one, integral: false }));
  const feature = buildModel({ ...few.payload, features, arrays: { ...few.payload.arrays, knots: packed } }).features[
    at
  ];
  const texts = Array.from(feature.knots, (knot) => valueText(feature, knot));
  assert.equal(new Set(texts).size, texts.length);
});
