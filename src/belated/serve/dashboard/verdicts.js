// What can be promised: the two certificates and the health of the store, in words.

import { byId, tell } from "/static/dom.js";
import { average, bytes, count, duration, plural, roughly, total } from "/static/words.js";

export function showCertificates({ certificates, outcome, reported }) {
  const { proven, measured, decisions } = certificates;
  tell("proven", proven === null ? "–" : total(proven));
  const hasOutcomes = reported > 0;
  tell("measured", hasOutcomes ? roughly(measured) : "–");
  tell("certificates-words", decisions === 0 ? "There is nothing to say before the first decision." : meaning(decisions, outcome));
  tell("proven-words", decisions === 0 || proven === null ? "" : provenWords(proven, decisions, outcome));
  tell("measured-words", hasOutcomes ? measuredWords(measured, decisions, outcome) : "Not known before the first outcome.");
}

function meaning(decisions, outcome) {
  const worse = outcome.better === "higher" ? "less" : "more";
  return `Learning costs something: while it finds out, it also chooses options that are not the best. Over ${plural(decisions, "decision")}, how much ${worse} in total than if the best option had been chosen every time?`;
}

function provenWords(proven, decisions, outcome) {
  const range = outcome.highest - outcome.lowest;
  const worst = decisions * range;
  const each = `That is ${average(proven / decisions, outcome)} for each decision. It is a mathematical guarantee, averaged over the luck of the draw: it holds whatever the outcomes are and however late they come.`;
  if (proven >= 0.9 * worst) return `This says nothing yet: no way of choosing could lose more than ${total(worst)}. It becomes telling with more decisions.`;
  if (proven >= 0.5 * worst) return `${each} This says little yet: the worst possible is ${total(worst)}.`;
  return each;
}

function measuredWords(measured, decisions, outcome) {
  if (measured <= 0) return "No loss against the best option can be seen in this experiment's own data.";
  return `About ${average(measured / decisions, outcome)} for each decision, judged cautiously by this experiment's own data: the true loss is usually smaller.`;
}

const SLOW_COMMIT = 100; // milliseconds
const LONG_QUEUE = 1000;
const LONG_LAG = 1; // seconds

export function showStore({ store }) {
  const [state, verdict, words] = health(store);
  document.querySelector('[data-testid="store-state"]').dataset.state = state;
  tell("store-state", verdict);
  tell("store-words", words);
  tell("store-kind", { sqlite: "SQLite file", postgresql: "PostgreSQL", memory: "memory only" }[store.kind] ?? store.kind);
  tell("store-entries", `${count(store.entries)} (${bytes(store.bytes)})`);
  tell("store-commit", store.last_commit_ms === null ? "none yet" : `${total(store.last_commit_ms)} ms`);
  tell("store-queue", count(store.queue));
  tell("store-lag", store.lag_seconds < 0.001 ? "not at all" : `${plural(store.lag_entries, "entry", "entries")}, ${duration(store.lag_seconds)}`);
  tell("store-unsnapshotted", plural(store.unsnapshotted, "entry", "entries"));
  byId("store").hidden = false;
  byId("alarm").hidden = store.writable; // on top of the page: nobody should have to scroll for it
}

function health(store) {
  if (!store.writable) return ["bad", "Cannot save", `The server cannot write to its store: new decisions and outcomes are refused. ${remedy(store)} What was saved is safe.`];
  if (store.lag_seconds > LONG_LAG) return ["slow", "Behind", "Everything is saved, but this server has not read what others have saved since: it decides by what it knew before, and this page shows no more than that."];
  if (store.queue > LONG_QUEUE || store.last_commit_ms > SLOW_COMMIT) return ["slow", "Slow", "Everything is saved, but saving takes long: answers may come late."];
  return ["good", "Healthy", "Every decision and every outcome is saved before it is confirmed."];
}

function remedy({ kind }) {
  return kind === "sqlite" ? "Give the disk room and restart it." : "It tries to reach the database, and goes on by itself when it is back.";
}
