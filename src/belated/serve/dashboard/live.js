// Follow a document of the server: first as it is, then each time it changes, again after every lost connection.
// Event streams are read with fetch, because EventSource cannot send a key.

import { byId, write } from "/static/dom.js";
import { get, Problem, request } from "/static/server.js";
import { timeOfDay } from "/static/words.js";

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 8_000;
const SILENCE = 60_000; // the server pings well within this time

/** Call show(document) for ever; a Problem (say, no such experiment) ends it and goes to fail(problem). */
export async function follow(path, livePath, show, fail) {
  let pause = FIRST_PAUSE;
  for (;;) {
    await isVisible(); // a browser has few connections to a server: a hidden tab gives its own back
    try {
      await followOnce(path, livePath, (document) => {
        show(document);
        pause = FIRST_PAUSE;
      });
    } catch (error) {
      if (error instanceof Problem && error.status < 500 && error.status !== 429) return fail(error);
    }
    if (document.hidden) continue;
    sayLost();
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(2 * pause, LONGEST_PAUSE);
  }
}

async function followOnce(path, livePath, show) {
  const abort = new AbortController();
  const stopIfHidden = () => document.hidden && abort.abort();
  document.addEventListener("visibilitychange", stopIfHidden);
  let silence;
  try {
    // The stream is opened first: what changes between the two answers is not missed.
    const stream = await request(livePath, { signal: abort.signal });
    draw(show, await get(path));
    sayLive();
    const reader = stream.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      silence = setTimeout(() => abort.abort(), SILENCE);
      const { done, value } = await reader.read();
      clearTimeout(silence);
      if (done) return;
      const events = (text + value).split("\n\n");
      text = events.pop();
      const latest = events.map(dataOf).filter(Boolean).at(-1);
      if (latest) draw(show, JSON.parse(latest));
    }
  } finally {
    clearTimeout(silence);
    abort.abort();
    document.removeEventListener("visibilitychange", stopIfHidden);
  }
}

/** An error while drawing is ours, not the connection's: it must not look like a lost one. */
function draw(show, data) {
  try {
    show(data);
  } catch (error) {
    reportError(error);
  }
  write(byId("updated"), `Last change ${timeOfDay(new Date())}`);
}

function dataOf(event) {
  const lines = event.split("\n").filter((line) => line.startsWith("data:"));
  return lines.map((line) => line.slice(5).trim()).join("\n");
}

function isVisible() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}

function sayLive() {
  byId("connection").dataset.state = "live";
  write(byId("connection"), "Live");
}

function sayLost() {
  byId("connection").dataset.state = "lost";
  write(byId("connection"), "Connection lost, trying again");
}
