/** One control per feature: a slider and a field for a number, a list for levels, and a switch for missing. */

import { h, name, shorten } from "./dom.ts";
import { signed, valueText } from "./format.ts";
import { type Feature, locateValue, valueAt } from "./model.ts";
import type { Value } from "./payload.ts";
import type { State } from "./state.ts";

export interface Control {
  element: HTMLElement;
  /** Show the state's value and its contribution. */
  sync(decimals: number): void;
}

/** Return the control of a feature. */
export function makeControl(state: State, feature: Feature): Control {
  const id = `what-${feature.at}`;
  const missing = h("input", { type: "checkbox", id: `${id}-missing` });
  const chip = h("output", { class: "chip", for: id });
  const input = feature.kind === "number" ? numberInput(state, feature, id) : levelInput(state, feature, id);
  let before: Value = state.values[feature.at];
  missing.addEventListener("change", () => {
    if (missing.checked) before = state.values[feature.at];
    state.setValue(feature.at, missing.checked ? null : (before ?? defaultValue(feature)));
  });
  const element = h(
    "div",
    { class: "control", "data-feature": feature.at },
    h("label", { class: "control-name", for: id }, name(feature.name)),
    chip,
    h("div", { class: "control-inputs" }, input.element),
    h("label", { class: "check control-missing", for: `${id}-missing` }, missing, " missing"),
  );
  return {
    element,
    sync(decimals) {
      const value = state.values[feature.at];
      missing.checked = value === null;
      element.classList.toggle("is-missing", value === null);
      input.sync(value);
      const contribution = state.explanation.values[feature.at * state.model.nOutputs + state.output];
      chip.textContent = signed(contribution, decimals);
      chip.className = `chip ${contribution >= 0 ? "up" : "down"}`;
    },
  };
}

interface Input {
  element: HTMLElement;
  sync(value: Value): void;
}

function defaultValue(feature: Feature): Value {
  if (feature.kind === "category") return feature.levels[0] ?? feature.unseen;
  return feature.knots[Math.floor((feature.knots.length - 1) / 2)];
}

/** Round a number between two knots as far as a reader would. */
function readable(feature: Feature, value: number): number {
  return feature.integral ? Math.round(value) : Number(value.toPrecision(6));
}

function numberInput(state: State, feature: Feature, id: string): Input {
  const last = feature.knots.length - 1;
  const slider = h("input", {
    type: "range",
    id,
    min: 0,
    max: last,
    // The slider runs through the training rows, so that a long tail does not take most of it.
    step: feature.integral ? 1 : 0.05,
    disabled: last === 0,
  });
  const field = h("input", {
    type: "number",
    step: "any",
    class: "exact",
    "aria-label": `${feature.name}, exact value`,
  });
  slider.addEventListener("input", () => {
    const position = Number(slider.value);
    const value = Number(valueAt(feature, position));
    // Knots themselves stay exact.
    state.setValue(feature.at, Number.isInteger(position) ? value : readable(feature, value));
  });
  field.addEventListener("input", () => {
    const value = field.value.trim() === "" ? null : Number(field.value);
    state.setValue(feature.at, value !== null && Number.isFinite(value) ? value : null);
  });
  return {
    element: h("div", { class: "slide" }, slider, field),
    sync(value) {
      field.disabled = false;
      if (value === null) {
        if (document.activeElement !== field) field.value = "";
        slider.setAttribute("aria-valuetext", "missing");
        return;
      }
      const [slot, part] = locateValue(feature, value);
      if (document.activeElement !== slider) slider.value = String(slot + part);
      if (document.activeElement !== field) field.value = String(Number(Number(value).toPrecision(6)));
      slider.setAttribute("aria-valuetext", valueText(feature, value));
      slider.style.setProperty("--part", `${(100 * (slot + part)) / Math.max(last, 1)}%`);
    },
  };
}

function levelInput(state: State, feature: Feature, id: string): Input {
  const select = h("select", { id });
  const options: Value[] = [];
  const add = (text: string, value: Value): void => {
    select.append(h("option", { value: options.length }, shorten(text, 60)));
    options.push(value);
  };
  for (const slot of feature.order) {
    if (slot >= feature.nValues) continue;
    if (feature.kind === "boolean") add(feature.labels[slot], feature.knots[slot]);
    else if (slot < feature.levels.length) add(feature.levels[slot], feature.levels[slot]);
    else add("other (a rare level)", feature.rare[0]);
  }
  const unseenAt = options.length;
  if (feature.kind === "category") add("unseen (a level not in training)", feature.unseen);
  add("", null);
  const missingOption = select.lastElementChild as HTMLOptionElement;
  missingOption.hidden = true;
  select.addEventListener("change", () => state.setValue(feature.at, options[Number(select.value)]));
  return {
    element: select,
    sync(value) {
      const at = value === null ? options.length - 1 : options.findIndex((option) => isSame(feature, option, value));
      select.value = String(at < 0 ? unseenAt : at);
    },
  };
}

function isSame(feature: Feature, option: Value, value: Value): boolean {
  if (option === null || value === null) return option === value;
  if (feature.kind === "boolean") return Number(option) === Number(value);
  return feature.slotOf.get(String(option)) === feature.slotOf.get(String(value));
}
