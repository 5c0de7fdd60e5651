// Made from protocol.schema.json by python -m tests.protocol.

export type NodeStatus = "current" | "done" | "waiting" | "skipped" | "failed";

export type FrameStatus = "active" | "done" | "waiting" | "taken" | "skipped";

export type BreakpointState = "on" | "off";

/** Kind of the colour, its number, and the value as text. */
export type Tint = ["number" | "text" | "change", number, string];

export type NodeKind = "operation" | "parameter" | "result" | "constant" | "control" | "condition" | "output" | "folded" | "cut_end" | "more";

export type ClusterKind = "loop" | "tensor_iterator" | "if" | "then" | "else" | "region" | "body" | "group" | "copy";

export type EdgeKind = "data" | "input_map" | "output_map" | "merge" | "back" | "again" | "carried" | "goes_on" | "trip_count" | "start" | "condition" | "branch" | "cut_end";

export type Family = "port" | "constant" | "math" | "logic" | "matrix" | "activation" | "movement" | "shape" | "sequence" | "region" | "other";

/** Python to canvas: the part of a picture that does not depend on a run. Each structure is laid out once. Ids are synthetic. */
export type Structure = {
  /** Static address of the shown graph. */
  root: string;
  /** DOT text for Graphviz. @r1w@ and @r1h@ stand for the width and height of row r1. */
  dot: string;
  rows: Row[];
  nodes: Record<string, ViewNode>;
  clusters: Record<string, ViewCluster>;
  edges: Record<string, ViewEdge>;
  /** Names of the families in the picture, for the legend. */
  families: Record<string, string>;
  /** Number of boxes that are hidden by folding. */
  hidden: number;
  /** Hash of the content. */
  hash: string;
};

/** A box. Empty fields are left out. */
export type ViewNode = {
  kind: NodeKind;
  /** Static address with the iterations of unrolled loops; of an output box, the address of its tensor. */
  address: string;
  family: Family;
  width: number;
  height: number;
  /** Number of outputs. */
  outputs: number;
  title?: string;
  name?: string;
  detail?: string;
  /** Id of the frame that contains it. */
  cluster?: string;
  /** Address of the body that a double click opens. */
  body?: string;
  badge?: string;
  constants?: string[];
  /** Set for a folded loop that carries a number. */
  spark?: true;
  /** Set for an operator that opens as a loop. */
  opens?: true;
  tooltip?: string;
};

/** A frame. */
export type ViewCluster = {
  kind: ClusterKind;
  address: string;
  title: string;
  name: string;
  /** Id of the frame around it; empty if there is none. */
  parent: string;
  body: string;
  foldable: boolean;
  loop: boolean;
  /** Number of iterations side by side; 0 unless the loop is unrolled. */
  copies: number;
};

/** An edge. */
export type ViewEdge = {
  kind: EdgeKind;
  source: string;
  target: string;
  label: string;
  tensor: string;
  /** Visible only while one of its ends is hovered or selected. */
  latent?: true;
  /** Carries a part of a tensor. */
  sliced?: true;
  /** Both ends are in one frame, in which the label is placed. */
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

/** Ids of the parts of a copy, in the same order in each copy; the copy's own frame comes first. */
export type Copy = {
  clusters: string[];
  nodes: string[];
  edges: string[];
};

/** Values (0 to 100, null if not a number), then the positions of the current and of the first non-finite value, 0 to 1. */
export type Spark = [(number | null)[], number | null, number | null];

/** The state of a picture at one moment of a run, by ids of its structure. */
export type Overlay = {
  /** Statuses of boxes. */
  nodes: Record<string, NodeStatus>;
  /** Boxes with an output that contains NaN. */
  nans: Record<string, true>;
  /** Texts of the values of a box, by output number; empty if there is no value. */
  values: Record<string, string[]>;
  /** Of back edges: the value for the next iteration, and the value that this iteration began with. */
  backs: Record<string, [string, string]>;
  /** Of frames and folded loops: the iteration, or how the loop ended. */
  headers: Record<string, string>;
  /** Of loops with a known bound: the part of the iterations that has begun, 0 to 1. */
  progress: Record<string, number>;
  /** Statuses of frames. */
  frames: Record<string, FrameStatus>;
  /** Of port maps: the part that this iteration uses. */
  slices: Record<string, string>;
  /** Sparklines of folded loops. */
  sparks: Record<string, Spark>;
  /** Id of the box or frame that runs next; empty at the end. */
  next: string;
  /** Id of the box or frame that the camera follows. */
  current: string;
  /** Id of the selected box. */
  selected: string;
  /** States of the breakpoints on boxes. */
  breakpoints: Record<string, BreakpointState>;
  /** Of the boxes and edges that a traced value came from: the distance from the value. */
  origins: Record<string, number>;
  /** Of boxes: the level of their share of the run's time. */
  heats: Record<string, number>;
  /** Of boxes: colours from data about nodes. */
  tints: Record<string, Tint>;
  /** Legend of the tints: a title, a kind, and the two ends of the scale (number) or the texts (text, change); empty if there are none. */
  scale: string[];
};

/** A part of the run that a tape of the timeline shows. */
export type Track = {
  title: string;
  first: number;
  last: number;
  /** Steps at which iterations begin; a selection if there are very many. */
  begins: number[];
  /** The step after each iteration, or after the iterations that it stands for. */
  ends: number[];
  /** Numbers of these iterations, from 0. */
  iterations: number[];
  /** A letter for each of these iterations: t for then, e for else, - for none. */
  branches: string;
  /** Name of the If of these branches; empty if there is none. */
  branches_of: string;
  /** Number of iterations that have begun. */
  count: number;
  /** Iteration of the cursor, from 0. */
  iteration?: number;
  /** True if further iterations may begin; else missing. */
  is_open?: boolean;
  /** First step of each other loop of the main graph, and the step after its last. */
  others?: [number, number][];
};

/** Python to canvas: the overlay of the current moment. The fields of a run are all set or all missing. */
export type Moment = {
  /** Statuses of boxes. */
  nodes: Record<string, NodeStatus>;
  /** Boxes with an output that contains NaN. */
  nans: Record<string, true>;
  /** Texts of the values of a box, by output number; empty if there is no value. */
  values: Record<string, string[]>;
  /** Of back edges: the value for the next iteration, and the value that this iteration began with. */
  backs: Record<string, [string, string]>;
  /** Of frames and folded loops: the iteration, or how the loop ended. */
  headers: Record<string, string>;
  /** Of loops with a known bound: the part of the iterations that has begun, 0 to 1. */
  progress: Record<string, number>;
  /** Statuses of frames. */
  frames: Record<string, FrameStatus>;
  /** Of port maps: the part that this iteration uses. */
  slices: Record<string, string>;
  /** Sparklines of folded loops. */
  sparks: Record<string, Spark>;
  /** Id of the box or frame that runs next; empty at the end. */
  next: string;
  /** Id of the box or frame that the camera follows. */
  current: string;
  /** Id of the selected box. */
  selected: string;
  /** States of the breakpoints on boxes. */
  breakpoints: Record<string, BreakpointState>;
  /** Of the boxes and edges that a traced value came from: the distance from the value. */
  origins: Record<string, number>;
  /** Of boxes: the level of their share of the run's time. */
  heats: Record<string, number>;
  /** Of boxes: colours from data about nodes. */
  tints: Record<string, Tint>;
  /** Legend of the tints: a title, a kind, and the two ends of the scale (number) or the texts (text, change); empty if there are none. */
  scale: string[];
  /** Key of the canvas. */
  key: string;
  /** Hash of the structure that the ids belong to. */
  hash: string;
  /** Id of a part to bring into view, once per change. */
  focus: string;
  /** Name of the value whose origins are highlighted. */
  traced: string;
  /** Number of the last received act; it confirms all acts up to it. */
  acted: number;
  /** Name of the run; two runs have different names. */
  run?: string;
  step?: number;
  /** Number of computed steps. */
  steps?: number;
  /** True if no further step can be computed. */
  over?: boolean;
  tracks?: Track[];
  /** Number of the last received report. */
  reported?: number;
  /** Number of the last move; it confirms all moves up to it. */
  moved?: number;
  /** Number that grows when the canvas should begin or end playing. */
  plays?: number;
};

/** Python to canvas: prefetched steps of the run. Without a request, only the fields that identify the run are set. */
export type Stretch = {
  /** Key of the canvas. */
  key: string;
  /** Hash of the structure that the ids belong to. */
  hash: string;
  run: string;
  /** Step of the first frame. */
  first?: number;
  /** The first overlay, then the changes of each step. */
  frames?: Change[];
  /** The first step of the stretch, or after it, at which a breakpoint stops the run. */
  stop?: number;
  /** The last step of the run, if it is known. */
  end?: number;
};

/** A change of an overlay. In its tables, null removes an entry. */
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
  /** Id of the box or frame that the camera follows. */
  current?: string;
  /** Id of the selected box. */
  selected?: string;
  breakpoints?: Record<string, BreakpointState | null>;
  origins?: Record<string, number | null>;
  heats?: Record<string, number | null>;
  tints?: Record<string, Tint | null>;
  scale?: string[];
};

/** Canvas to Python, state acts: the acts that are not confirmed, sent again until they are. */
export type Acts = Act[];

/** An action of the user on the picture. */
export type Act = {
  kind: "select" | "clear" | "open" | "fold" | "unroll" | "earlier" | "later" | "fewer" | "wider" | "key" | "too_dense" | "untrace" | "breakpoint" | "look";
  /** Root of the picture on which the user acted. */
  root: string;
  /** Number of the message; it grows. */
  count: number;
  /** Id of the box or frame. */
  id?: string;
  /** Address of the box or frame, because ids change with the picture. */
  address?: string;
  key?: "Backspace";
};

/** Canvas to Python, state moves: the moves that are not confirmed, sent again until they are. */
export type Moves = {
  run: string;
  moves: Move[];
};

/** A move that only Python can make. */
export type Move = {
  name: "restart" | "back" | "step" | "over" | "into" | "out" | "previous" | "next" | "run";
  /** Number of the message; it grows. */
  count: number;
  /** Step from which the move starts; null for the end of the previous move. */
  start: number | null;
};

/** Canvas to Python, state step: the step that the canvas has reached by itself. */
export type Report = {
  step: number;
  run: string;
  /** Number of the message; it grows. */
  count: number;
  playing: boolean;
};

/** Prefetch to Python, state ask: the first step of the requested stretch. */
export type Ask = {
  step: number;
  run: string;
  /** Number of the message; it grows. */
  count: number;
};
