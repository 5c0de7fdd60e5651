// Types of the calls of components and of the data that Python sends to each, for the type checker.

export type Call<Data> = {
  /** Undefined before the first message of Python. */
  data: Data | undefined;
  parentElement: HTMLElement;
  /** Send a value that Python receives once. */
  setTriggerValue: (name: string, value: unknown) => void;
  /** Set a value that Python reads until it changes. */
  setStateValue: (name: string, value: unknown) => void;
};

/** An entry of a list of places. */
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

/** A node that a search has found. */
export type Hit = {
  address: string;
  family: string;
  type: string;
  name: string;
  value: string;
  where: string;
  why: string;
};

/** `asked`: the query of the hits. `picked`: the number of the last choice that Python has received. */
export type Finds = { hits: Hit[]; foot: string; asked: string; picked: number };

/** Lines of code, each with true if it belongs to a node. `head`: the lines that a runnable file needs before them. */
export type Listing = { key: string; hash: string; head: string; lines: [string, boolean][] };

/**
 * Marks of a listing's lines, by line number: the current lines, the lines that are skipped (`dim`), the lines of the
 * selection (`chosen`), and the texts beside lines.
 */
export type ListingMoment = {
  key: string;
  hash: string;
  current: number[];
  dim: number[];
  chosen: number[];
  hints: Record<number, string>;
};

/** `now`: number of the current row. `inView`: number of the row to scroll to. */
export type Rows = { titles: string[]; cells: string[][]; now: number | null; inView: number | null };

/** A block of a lane. It takes one of `parts` equal parts of the lane's height. */
export type Block = [
  from: number,
  to: number,
  kind: string,
  level: number,
  text: string,
  tooltip?: string,
  part?: number,
  parts?: number,
];

export type Lane = {
  name: string;
  note: string;
  verdict: string;
  height: number;
  strong: boolean;
  pick: boolean;
  blocks: Block[];
  line: (number | null)[] | null;
  /** Curve of a second run, which is drawn dashed. */
  second_line: (number | null)[] | null;
};

/** A mark. `lane`: the number of its lane; -1 or undefined for all lanes. */
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

/** The position of the run on the axis of a chart. `wide`: the length of the moment on the axis. */
export type Cursor = { key: string; at: number | null; wide: number };
