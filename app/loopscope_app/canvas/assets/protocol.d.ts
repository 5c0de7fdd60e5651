// Made from protocol.schema.json by python -m tests.protocol.

export type NodeStatus = "current" | "done" | "waiting" | "skipped" | "failed";

export type FrameStatus = "active" | "done" | "waiting" | "taken" | "skipped";

export type BreakpointState = "on" | "off";

/** Number, text or change, the colour, and the value in words. */
export type Tint = ["number" | "text" | "change", number, string];

export type NodeKind = "operation" | "parameter" | "result" | "constant" | "control" | "condition" | "output" | "folded" | "cut_end" | "more";

export type ClusterKind = "loop" | "tensor_iterator" | "if" | "then" | "else" | "region" | "body" | "group" | "copy";

export type EdgeKind = "data" | "input_map" | "output_map" | "merge" | "back" | "again" | "carried" | "goes_on" | "trip_count" | "start" | "condition" | "branch" | "cut_end";

export type Family = "port" | "constant" | "math" | "logic" | "matrix" | "activation" | "movement" | "shape" | "sequence" | "region" | "other";

/** Python to canvas: everything of a picture that does not depend on a run. A new one is laid out; ids are synthetic. */
export type Structure = {
  /** Static address of the graph that is shown. */
  root: string;
  /** For Graphviz. The size of a row is asked for as @r1w@ and @r1h@. */
  dot: string;
  rows: Row[];
  nodes: Record<string, ViewNode>;
  clusters: Record<string, ViewCluster>;
  edges: Record<string, ViewEdge>;
  /** Words for the colours of the picture. */
  families: Record<string, string>;
  /** Boxes that are folded away. */
  hidden: number;
  /** Names the content. */
  hash: string;
};

/** A box. What is empty is left out. */
export type ViewNode = {
  kind: NodeKind;
  /** Static, with the iterations of unrolled loops; of an output box its tensor's. */
  address: string;
  family: Family;
  width: number;
  height: number;
  /** Values that leave it. */
  outputs: number;
  title?: string;
  name?: string;
  detail?: string;
  /** The frame that it is in. */
  cluster?: string;
  /** What a double click opens. */
  body?: string;
  badge?: string;
  constants?: string[];
  /** A folded loop that carries a number. */
  spark?: true;
  /** An operator that opens as a loop. */
  opens?: true;
  tooltip?: string;
};

/** A frame. */
export type ViewCluster = {
  kind: ClusterKind;
  address: string;
  title: string;
  name: string;
  /** The frame round it; empty outside of all. */
  parent: string;
  body: string;
  foldable: boolean;
  loop: boolean;
  /** Iterations side by side; 0 unless it is unrolled. */
  copies: number;
};

/** A line. */
export type ViewEdge = {
  kind: EdgeKind;
  source: string;
  target: string;
  label: string;
  tensor: string;
  /** Seen only while one of its ends is pointed at or selected. */
  latent?: true;
  /** Carries a part of a tensor. */
  sliced?: true;
  /** Both ends are in one frame, where its label belongs. */
  inside?: true;
};

/** Copies of an unrolled body, laid out once and drawn side by side. */
export type Row = {
  id: string;
  cluster: string;
  dot: string;
  copies: Copy[];
  earlier: string;
  later: string;
};

/** Ids of what is inside a copy, in the same order in each; its own frame comes first. */
export type Copy = {
  clusters: string[];
  nodes: string[];
  edges: string[];
};

/** Points (0 to 100, null where not a number), then where it is now and where it first is not finite, 0 to 1. */
export type Spark = [(number | null)[], number | null, number | null];

/** How one moment of a run restyles a picture: by ids of its structure. */
export type Overlay = {
  /** Of boxes. */
  nodes: Record<string, NodeStatus>;
  /** Boxes of which a value contains NaN. */
  nans: Record<string, true>;
  /** Texts on the wires that leave a box, by output number; empty where there is no value. */
  values: Record<string, string[]>;
  /** On back edges: the value handed to the next iteration, and the one that this iteration began with. */
  backs: Record<string, [string, string]>;
  /** On frames and folded loops: the iteration, or how the loop ended. */
  headers: Record<string, string>;
  /** Of loops that say how often they run: the part that is done. */
  progress: Record<string, number>;
  /** Of frames. */
  frames: Record<string, FrameStatus>;
  /** On port maps: which part this iteration uses. */
  slices: Record<string, string>;
  /** On folded loops. */
  sparks: Record<string, Spark>;
  /** Id of the box or frame that runs next; empty at the end. */
  next: string;
  /** Id of the box or frame to keep in sight. */
  current: string;
  /** Id of the selected box. */
  selected: string;
  /** On boxes. */
  breakpoints: Record<string, BreakpointState>;
  /** Of boxes and lines that a traced value came through: the distance from it. */
  origins: Record<string, number>;
  /** On boxes: how much of a run's time they took. */
  heats: Record<string, number>;
  /** On boxes: what others say of them. */
  tints: Record<string, Tint>;
  /** What those colours mean: a title, number with the ends of the scale, or text or change with the texts; empty for none. */
  scale: string[];
};

/** A stretch of the run to slide along. */
export type Track = {
  title: string;
  first: number;
  last: number;
  /** Steps at which iterations begin; of very many, some. */
  begins: number[];
  /** The step after each of them, or after those that it stands for. */
  ends: number[];
  /** Their numbers, from 0. */
  iterations: number[];
  /** A letter for each of them: t for then, e for else, -. */
  branches: string;
  /** The If that took them; empty for none. */
  branches_of: string;
  /** Iterations that have begun. */
  count: number;
  /** 0-based, of the cursor. */
  iteration?: number;
};

/** Python to canvas: the overlay of now. Those of the run come together, when there is one. */
export type Moment = {
  /** Of boxes. */
  nodes: Record<string, NodeStatus>;
  /** Boxes of which a value contains NaN. */
  nans: Record<string, true>;
  /** Texts on the wires that leave a box, by output number; empty where there is no value. */
  values: Record<string, string[]>;
  /** On back edges: the value handed to the next iteration, and the one that this iteration began with. */
  backs: Record<string, [string, string]>;
  /** On frames and folded loops: the iteration, or how the loop ended. */
  headers: Record<string, string>;
  /** Of loops that say how often they run: the part that is done. */
  progress: Record<string, number>;
  /** Of frames. */
  frames: Record<string, FrameStatus>;
  /** On port maps: which part this iteration uses. */
  slices: Record<string, string>;
  /** On folded loops. */
  sparks: Record<string, Spark>;
  /** Id of the box or frame that runs next; empty at the end. */
  next: string;
  /** Id of the box or frame to keep in sight. */
  current: string;
  /** Id of the selected box. */
  selected: string;
  /** On boxes. */
  breakpoints: Record<string, BreakpointState>;
  /** Of boxes and lines that a traced value came through: the distance from it. */
  origins: Record<string, number>;
  /** On boxes: how much of a run's time they took. */
  heats: Record<string, number>;
  /** On boxes: what others say of them. */
  tints: Record<string, Tint>;
  /** What those colours mean: a title, number with the ends of the scale, or text or change with the texts; empty for none. */
  scale: string[];
  /** Of the canvas. */
  key: string;
  /** Of the structure whose ids are meant. */
  hash: string;
  /** Id of what is to come into sight, once per change. */
  focus: string;
  /** Name of the value whose origins light up. */
  traced: string;
  /** Number of the last act that was heard: all up to it are confirmed. */
  acted: number;
  /** Names the run: differs between runs. */
  run?: string;
  step?: number;
  /** That have been computed. */
  steps?: number;
  /** No more can be computed. */
  over?: boolean;
  tracks?: Track[];
  /** Number of the last report that was heard. */
  reported?: number;
  /** Number of the last move that was made: all up to it are confirmed. */
  moved?: number;
  /** Grows when the canvas is to begin or to end playing. */
  plays?: number;
};

/** Python to canvas: steps of the run sent ahead. Only what it belongs to, while nothing has been asked for. */
export type Stretch = {
  /** Of the canvas. */
  key: string;
  /** Of the structure whose ids are meant. */
  hash: string;
  run: string;
  /** Step of the first frame. */
  first?: number;
  /** The first overlay whole, then what each step changes. */
  frames?: Change[];
  /** The first of these steps, or behind them, at which a breakpoint holds. */
  stop?: number;
  /** The last step of the run, where that is known. */
  end?: number;
};

/** What to change in an overlay: in its tables null takes an entry away. */
export type Change = {
  nodes?: Record<string, NodeStatus | null>;
  nans?: Record<string, true | null>;
  values?: Record<string, string[] | null>;
  backs?: Record<string, [string, string] | null>;
  headers?: Record<string, string | null>;
  progress?: Record<string, number | null>;
  frames?: Record<string, FrameStatus | null>;
  slices?: Record<string, string | null>;
  sparks?: Record<string, Spark | null>;
  /** Id of the box or frame that runs next; empty at the end. */
  next?: string;
  /** Id of the box or frame to keep in sight. */
  current?: string;
  /** Id of the selected box. */
  selected?: string;
  breakpoints?: Record<string, BreakpointState | null>;
  origins?: Record<string, number | null>;
  heats?: Record<string, number | null>;
  tints?: Record<string, Tint | null>;
  scale?: string[];
};

/** Canvas to Python, state acts: those that are not confirmed, told again until they are. */
export type Acts = Act[];

/** Something that a person did. */
export type Act = {
  kind: "select" | "clear" | "open" | "fold" | "unroll" | "earlier" | "later" | "fewer" | "wider" | "key" | "too_dense" | "untrace" | "breakpoint" | "look";
  /** The root of the picture it was done on. */
  root: string;
  /** Later ones have greater numbers. */
  count: number;
  /** Of the box or frame. */
  id?: string;
  /** Of the same: where the picture has changed since, ids mean something else. */
  address?: string;
  key?: "Backspace";
};

/** Canvas to Python, state moves: those that are not confirmed, told again until they are. */
export type Moves = {
  run: string;
  moves: Move[];
};

/** A move that only Python can make. */
export type Move = {
  name: "restart" | "back" | "step" | "over" | "into" | "out" | "previous" | "next" | "run";
  /** Later ones have greater numbers. */
  count: number;
  /** Step that it goes on from; null for where the one before has led. */
  start: number | null;
};

/** Canvas to Python, state step: where the canvas has come to by itself. */
export type Report = {
  step: number;
  run: string;
  /** Later ones have greater numbers. */
  count: number;
  playing: boolean;
};

/** Prefetch to Python, state ask: the first step that should be sent ahead. */
export type Ask = {
  step: number;
  run: string;
  /** Later ones have greater numbers. */
  count: number;
};
