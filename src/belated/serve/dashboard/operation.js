// What a team does with the experiment: whether it is paused, frozen or ended, and what happened before.

import { byId, el, showEach, write, writeTo } from "/static/dom.js";
import { average, duration, listed, moment, percent, plural, shortened, total } from "/static/words.js";

export function showOperation(experiment) {
  const words = WORDS[experiment.state]?.(shortened(experiment.shown ?? ""));
  const aside = asideWords(experiment);
  byId("operation").hidden = !words && !aside;
  writeTo("operation-words", words?.[0] ?? "");
  writeTo("operation-hint", words?.[1] ?? "");
  writeTo("aside", aside);
}

const WORDS = {
  paused: () => ["This experiment is paused.", "It makes no decisions until you resume it. Outcomes are still taken."],
  frozen: (name) => [`This experiment is frozen. Every decision shows ${name}.`, "It learns nothing from these decisions. Outcomes of earlier ones still count."],
  ended: (name) => [`This experiment has ended. Every decision shows ${name}.`, "Outcomes of earlier decisions still count."],
};

function asideWords({ aside, outcome }) {
  if (!aside) return "";
  const mean = aside.mean === null ? "" : ` The average of ${plural(aside.known, "outcome")} is ${average(aside.mean, outcome)}.`;
  const count = aside.decisions === 1 ? "It counts as a decision and, while it waits, as an open one," : "They count as decisions and, while they wait, as open ones,";
  return `${plural(aside.decisions, "decision")} showed one option to all. ${count} and in nothing else.${mean}`;
}

export function showEvents({ events }) {
  const items = (events ?? []).map((event, index, all) => ({ ...event, key: all.length - index + event.at }));
  showEach(byId("events"), items, ({ key }) => key, () => el("li", {}), (node, event) => write(node, eventWords(event)));
}

function eventWords({ event, at, by, details }) {
  const key = by === null ? "" : ` Key ${by}.`;
  return `${moment(at)}: ${(EVENTS[event] ?? (() => event))(details)}.${key}`;
}

const EVENTS = {
  created: () => "created",
  arms: ({ add = [], retire = [] }) => [add.length && `added ${listed(add)}`, retire.length && `retired ${listed(retire)}`].filter(Boolean).join(", ") || "options changed",
  paused: () => "paused",
  resumed: () => "resumed",
  frozen: ({ arm }) => `frozen, shows ${arm}`,
  unfrozen: () => "learning goes on",
  ended: ({ arm }) => `ended, the winner is ${arm}`,
  closed: () => "closed",
  edited: ({ settings = {} }) => `changed ${listed(Object.entries(settings).map(([name, value]) => `${SETTINGS[name]?.(value) ?? name}`))}`,
};

const SETTINGS = {
  description: () => "the description",
  reward_wait: (seconds) => (seconds === null ? "the wait to no limit" : `the wait to ${duration(seconds)}`),
  default_outcome: (value) => (value === null ? "the default to none" : `the default to ${total(value)}`),
  floor: (share) => `the least share of an option to ${percent(share)}`,
  holdout: (share) => `the holdout to ${percent(share)}`,
  control: (name) => (name === null ? "the holdout to all options alike" : `the control to ${name}`),
};
