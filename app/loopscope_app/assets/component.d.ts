// What a component is called with, and what comes to each from Python, for the checker of JavaScript.

export type Call<Data> = {
  /** Undefined before the first word of Python. */
  data: Data | undefined;
  parentElement: HTMLElement;
  /** Python hears it once. */
  setTriggerValue: (name: string, value: unknown) => void;
  /** Python has it until it changes. */
  setStateValue: (name: string, value: unknown) => void;
};

/** A line of a list of places. */
export type Place = {
  kind: string;
  depth: string;
  live: boolean;
  role: string;
  title: string;
  detail: string;
  value: string;
  hint: string;
};

/** What a search has found. */
export type Hit = {
  address: string;
  family: string;
  type: string;
  name: string;
  value: string;
  where: string;
  why: string;
};

/** `asked`: the words that were searched; `picked`: the number of the last hit that was heard. */
export type Finds = { hits: Hit[]; foot: string; asked: string; picked: number };

/** Code as lines, each with whether it is of a node; `head`: what a file that runs needs before them. */
export type Listing = { key: string; hash: string; head: string; lines: [string, boolean][] };

/** Lines of a listing, by number: those of what runs, those that do not run, those of what is selected, and words beside them. */
export type ListingMoment = {
  key: string;
  hash: string;
  current: number[];
  dim: number[];
  chosen: number[];
  hints: Record<number, string>;
};

/** `now`: the number of the row of the moment. `inView`: the row to scroll to. */
export type Rows = { titles: string[]; cells: string[][]; now: number | null; inView: number | null };

/** Where it begins and ends, its kind, a level, its words, what a tooltip says, and which of how many parts of the lane's height it takes. */
export type Block = [number, number, string, number, string, string?, number?, number?];

export type Lane = {
  name: string;
  note: string;
  verdict: string;
  height: number;
  strong: boolean;
  pick: boolean;
  blocks: Block[];
  line: (number | null)[] | null;
  /** Of a second run, dashed. */
  second_line: (number | null)[] | null;
};

/** Of one lane, by its number; -1 or none for all. */
export type Mark = { at: number; until: number; lane: number; kind: string; text: string };

export type Chart = {
  key: string;
  label: string;
  lanes: Lane[];
  marks: Mark[];
  extent: number;
  first: number;
  unit: string;
  ticks: string[] | null;
};

/** Where a chart's run is; `wide`: how much of the axis the moment takes. */
export type Cursor = { key: string; at: number | null; wide: number };
