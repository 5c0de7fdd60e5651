// Overlays that were sent ahead: each step is a change of the one before, and shows the marks of now.

/** One overlay after a change; None of Python takes an entry away. */
export function patched(full, change) {
  const made = { ...full };
  for (const [name, value] of Object.entries(change)) {
    if (value === null || typeof value !== "object" || Array.isArray(value)) {
      made[name] = value;
      continue;
    }
    made[name] = { ...full[name] };
    for (const [key, one] of Object.entries(value)) one === null ? delete made[name][key] : (made[name][key] = one);
  }
  return made;
}

/** What a person has marked, which is the same in all steps that were sent ahead. */
export function marksOf({ selected, breakpoints, origins }) {
  return { selected, breakpoints, origins };
}
