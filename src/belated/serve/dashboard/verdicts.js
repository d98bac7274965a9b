// The two certificates and the health of the store, in words.

import { byId, writeTo } from "/static/dom.js";
import { average, bytes, count, duration, plural, roughly, total } from "/static/words.js";

export function showCertificates({ certificates, outcome, reported }) {
  const { proven, measured, decisions } = certificates;
  writeTo("proven", proven === null ? "–" : total(proven));
  const hasOutcomes = reported > 0;
  writeTo("measured", hasOutcomes ? roughly(measured) : "–");
  writeTo("certificates-words", decisions === 0 ? "This appears after the first decision." : meaning(decisions));
  writeTo("proven-words", decisions === 0 || proven === null ? "" : provenWords(proven, decisions, outcome));
  writeTo("measured-words", hasOutcomes ? measuredWords(measured, decisions, outcome) : "Not known until the first outcome arrives.");
}

function meaning(decisions) {
  return `To learn, the experiment sometimes chooses an option that is not the best. Here are two limits for what that has cost in total over ${plural(decisions, "decision")}, compared with always choosing the best option.`;
}

function provenWords(proven, decisions, outcome) {
  const range = outcome.highest - outcome.lowest;
  const worst = decisions * range;
  const each = `That is ${average(proven / decisions, outcome)} per decision. It is a mathematical guarantee for the average over the random choices. It assumes that the delay of an outcome does not depend on the option chosen, and that earlier choices do not change later outcomes or delays.`;
  if (proven >= 0.9 * worst) return `This says nothing yet, because no strategy could lose more than ${total(worst)}. It becomes useful with more decisions.`;
  if (proven >= 0.5 * worst) return `${each} It says little yet, because no strategy could lose more than ${total(worst)}.`;
  return each;
}

function measuredWords(measured, decisions, outcome) {
  if (measured <= 0) return "The data of this experiment shows no loss against the best option.";
  return `That is ${average(measured / decisions, outcome)} per decision. It is a cautious estimate from the data of this experiment. The true loss is usually smaller.`;
}

const SLOW_COMMIT = 100; // milliseconds
const LONG_QUEUE = 1000;
const LONG_LAG = 1; // seconds

export function showStore({ store }) {
  const [state, verdict, words] = health(store);
  document.querySelector('[data-testid="store-state"]').dataset.state = state;
  writeTo("store-state", verdict);
  writeTo("store-words", words);
  writeTo("store-kind", { sqlite: "SQLite file", postgresql: "PostgreSQL", memory: "memory only" }[store.kind] ?? store.kind);
  writeTo("store-entries", `${count(store.entries)} (${bytes(store.bytes)})`);
  writeTo("store-commit", store.last_commit_ms === null ? "none yet" : `${total(store.last_commit_ms)} ms`);
  writeTo("store-queue", count(store.queue));
  writeTo("store-lag", store.lag_seconds < 0.001 ? "not at all" : `${plural(store.lag_entries, "entry", "entries")}, ${duration(store.lag_seconds)}`);
  writeTo("store-unsnapshotted", plural(store.unsnapshotted, "entry", "entries"));
  byId("store").hidden = false;
  byId("alarm").hidden = store.writable; // at the top of the page, so that nobody has to scroll to see it
}

function health(store) {
  if (!store.writable) return ["bad", "Cannot save", `The server cannot write to its store, and refuses new decisions and outcomes. ${remedy(store)} Everything saved so far is safe.`];
  if (store.lag_seconds > LONG_LAG) return ["slow", "Behind", "Everything is saved, but this server has not read the newest entries of the other servers. Until it does, its decisions and this page use older data."];
  if (store.queue > LONG_QUEUE || store.last_commit_ms > SLOW_COMMIT) return ["slow", "Slow", "Everything is saved, but saving is slow. Answers may be delayed."];
  return ["good", "Healthy", "Every decision and every outcome is saved before it is confirmed."];
}

function remedy({ kind }) {
  return kind === "sqlite" ? "Free up disk space and restart the server." : "If the database cannot be reached, the server recovers by itself when it is back. After any other failure, restart the server.";
}
