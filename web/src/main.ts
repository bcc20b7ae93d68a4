/** The page: read the content, build the sections, and offer the model to the console. */

import { CaveatSection } from "./caveats.ts";
import { h, shorten } from "./dom.ts";
import { explain } from "./evaluate.ts";
import { FeatureSection } from "./features.ts";
import { buildModel, locate } from "./model.ts";
import { NeverSection } from "./never.ts";
import { PairSection } from "./pairs.ts";
import type { Payload, Value } from "./payload.ts";
import { recourseSection } from "./recourse.ts";
import { RowSection } from "./rows.ts";
import { State } from "./state.ts";
import { TopSection } from "./top.ts";
import { WhatIfSection } from "./whatif.ts";

const SECTIONS: [string, string][] = [
  ["features", "Features"],
  ["what-if", "What if"],
  ["pairs", "Pairs"],
  ["rows", "Rows"],
  ["recourse", "Change"],
  ["never", "Never"],
  ["caveats", "Caveats"],
];

function themeButton(state: State): HTMLElement {
  const button = h("button", { type: "button", id: "theme", class: "quiet" });
  const label = (): void => {
    button.textContent = state.isDark ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to the ${state.isDark ? "light" : "dark"} theme`);
  };
  const changed = (): void => {
    label();
    state.tell("theme");
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = state.isDark ? "light" : "dark";
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  label();
  return button;
}

function outputChoice(state: State): HTMLElement | null {
  const { outputs, classes } = state.model.payload;
  if (outputs.length < 2) return null;
  const select = h("select", { id: "output" });
  outputs.forEach((text, o) => {
    select.append(h("option", { value: o }, shorten(text, 40)));
  });
  select.addEventListener("change", () => state.setOutput(Number(select.value)));
  state.on("output", () => {
    select.value = String(state.output);
  });
  return h("label", { for: "output", class: "output" }, classes.length ? "Class " : "Output ", select);
}

function build(root: HTMLElement, payload: Payload): State {
  const state = new State(buildModel(payload));
  const features = new FeatureSection(state);
  const pairs = new PairSection(state);
  const sections = SECTIONS.filter(([id]) => id !== "recourse" || payload.recourse);
  const links = sections.map(([id, text]) => h("a", { href: `#${id}` }, text));
  root.append(
    h("a", { class: "skip", href: "#what-if" }, "Skip to what if"),
    h(
      "header",
      { class: "masthead" },
      h("nav", { "aria-label": "Sections" }, ...links),
      outputChoice(state),
      themeButton(state),
    ),
    h(
      "main",
      {},
      new TopSection(state).element,
      features.element,
      new WhatIfSection(state).element,
      pairs.element,
      new RowSection(state).element,
      payload.recourse ? recourseSection(state, payload.recourse) : "",
      new NeverSection(state).element,
      new CaveatSection(state).element,
    ),
    h(
      "footer",
      {},
      `Made with neural-additive-experts ${payload.library}. This page is complete in itself: it loads nothing and sends nothing.`,
    ),
  );
  addEventListener("beforeprint", () => {
    state.isOnPaper = true;
    features.drawAll();
    pairs.drawAll();
    state.tell("theme");
  });
  addEventListener("afterprint", () => {
    state.isOnPaper = false;
    state.tell("theme");
  });
  return state;
}

declare global {
  interface Window {
    nae?: { state: State; predict(values: Value[]): unknown };
  }
}

const source = document.getElementById("content");
const root = document.getElementById("report");
if (source && root) {
  const payload: Payload = JSON.parse(source.textContent ?? "");
  source.remove();
  document.title = payload.title;
  const state = build(root, payload);
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
  // For whoever opens the console: the model as a function of a row.
  window.nae = {
    state,
    predict: (values) => {
      const found = explain(state.model, locate(state.model, values));
      return Object.fromEntries(Object.entries(found).map(([key, numbers]) => [key, Array.from(numbers)]));
    },
  };
}
