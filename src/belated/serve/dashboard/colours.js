// A colour and a dash for each option that is drawn. Safe for the colour-blind (after Okabe and Ito), and the dash tells
// lines apart without colour. An option keeps its own as long as it is drawn, even if others come and go.

const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3], [], [7, 4], [2, 3], [10, 3, 2, 3]];
export const DRAWN = DASHES.length;
const places = new Map();

/** Give each of the names (at most DRAWN) a place among the colours. */
export function choosePlaces(names) {
  for (const name of places.keys()) if (!names.includes(name)) places.delete(name);
  for (const name of names) {
    const taken = new Set(places.values());
    if (!places.has(name)) places.set(name, DASHES.findIndex((_, place) => !taken.has(place)));
  }
}

const variable = (name) => (places.has(name) ? `--option-${places.get(name) + 1}` : "--option-others");

/** For style sheets: follows light and dark by itself. */
export const colour = (name) => `var(${variable(name)})`;

/** For a canvas, which needs the colour as it is now. */
export const paint = (name) => getComputedStyle(document.documentElement).getPropertyValue(variable(name)).trim();

export const dash = (name) => DASHES[places.get(name)] ?? [1, 3];
