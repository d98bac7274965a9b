// The form that creates an experiment.

import { byId, el, write } from "/static/dom.js";
import { defaultChecks, isFine, nameChecks, numberIn, optionChecks, shareChecks } from "/static/fields.js";
import { addPart, partsIn } from "/static/new-parts.js";
import { post, prepareOtherKey } from "/static/server.js";

export function prepareForm() {
  const form = byId("create");
  prepareOtherKey(byId("other-key"));
  byId("add-option").addEventListener("click", () => addOption().focus());
  byId("add-part").addEventListener("click", () => addPart().focus());
  addOption();
  addOption();
  byId("control").addEventListener("focus", () => offerControls(form));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    create(form);
  });
}

function addOption() {
  const number = byId("options").children.length + 1;
  const label = `Option ${number}`;
  const examples = ["e.g. blue", "e.g. green"];
  const field = el("input", { name: "arm", "aria-label": label, placeholder: examples[number - 1] ?? "", autocomplete: "off" });
  if (number <= 2) field.required = true;
  byId("options").append(field);
  return field;
}

/** Offer the options that were named so far. */
function offerControls(form) {
  const select = byId("control");
  const chosen = select.value;
  select.replaceChildren(select.options[0], ...namesIn(new FormData(form)).map((name) => el("option", { value: name }, name)));
  select.value = chosen;
}

const namesIn = (said) => said.getAll("arm").map((arm) => arm.trim()).filter((arm) => arm !== "");

/** What is said of outcomes that are one number. */
function outcomeIn(said, form) {
  return {
    outcome: { lowest: Number(said.get("lowest")), highest: Number(said.get("highest")), better: said.get("better") },
    default_outcome: numberIn(form.elements.default_outcome),
    ...(said.get("several") === "" ? {} : { several: said.get("several") }),
  };
}

/** The form as the API takes it. */
function described(form) {
  const said = new FormData(form);
  const wait = numberIn(form.elements.wait);
  return {
    name: said.get("name").trim(),
    arms: namesIn(said),
    ...(partsIn() ?? outcomeIn(said, form)),
    tuning: { name: said.get("tuning") },
    reward_wait: wait === null ? null : wait * Number(said.get("unit")),
    ...(said.get("description").trim() && { description: said.get("description").trim() }),
    ...(said.get("floor") && { floor: Number(said.get("floor")) / 100 }),
    ...(said.get("holdout") && { holdout: Number(said.get("holdout")) / 100 }),
    ...(said.get("control") && { control: said.get("control") }),
  };
}

/** What the server would refuse, before it is asked. */
function checksOf(form) {
  const { elements } = form;
  const [lowest, highest] = [Number(elements.lowest.value), Number(elements.highest.value)];
  const ofNumber = [[elements.highest, lowest >= highest, "This has to be more than the smallest possible outcome."], ...defaultChecks(elements, { lowest, highest })];
  const options = [...form.querySelectorAll("[name=arm]")];
  const shares = shareChecks(elements, namesIn(new FormData(form)).length);
  return [...nameChecks(elements.namedItem("name")), ...optionChecks(options), ...(partsIn() ? [] : ofNumber), ...shares];
}

function isReady(form) {
  try {
    return isFine(form, checksOf(form));
  } catch (error) {
    write(byId("create-error"), error.message); // of parts
    return false;
  }
}

async function create(form) {
  const button = form.querySelector("button.primary");
  write(byId("create-error"), "");
  if (!isReady(form)) return;
  button.disabled = true; // so that a second click does not send it again
  try {
    const { name } = await post("/v1/experiments", described(form));
    location.assign(`/experiments/${encodeURIComponent(name)}`);
  } catch (error) {
    write(byId("create-error"), error.message);
    button.disabled = false;
  }
}
