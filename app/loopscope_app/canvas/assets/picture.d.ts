// Types of a laid-out picture and its parts, for the type checker.

import type { ViewCluster } from "./protocol.js";

export type Point = { x: number; y: number };
export type Size = { width: number; height: number };
export type Area = { left: number; top: number; width: number; height: number };
export type Bounds = { left: number; right: number; top: number; bottom: number };

/** An edge: cubic Bezier pieces, and the tips of the arrows at its ends. */
export type Line = {
  points: Point[];
  begin: Point | null;
  end: Point | null;
  label: Point | null;
  /** The end that is in a copy of an unrolled body, for edges that Graphviz has not drawn. */
  copyEnd?: "source" | "target";
};

/** `margin`: height of the lanes above and below a copy. */
export type Frame = Point & Size & { margin?: number };

export type Geometry = Size & {
  /** Centers of boxes. */
  nodes: Record<string, Point>;
  clusters: Record<string, Frame>;
  edges: Record<string, Line>;
  /** Duration of the layout. */
  milliseconds?: number;
};

/** SVG groups, from the lowest to the uppermost. */
export type Layers = Record<"frames" | "lines" | "heads" | "labels" | "boxes" | "chips", SVGElement>;

/** Areas that labels avoid: boxes, and everything else in the picture. */
export type OccupiedAreas = { boxes: Bounds[]; obstacles: Bounds[] };

/** Graphviz's answer (json0). */
export type DotAnswer = { bb: string; objects?: DotObject[]; edges?: DotEdge[] };
export type DotObject = { id: string; name?: string; bb?: string; pos?: string };
export type DotEdge = { id?: string; pos?: string; lp?: string; tail: number; head: number; constraint?: string };

export type Sparkline = {
  group: SVGElement;
  line: SVGElement;
  now: SVGElement;
  odd: SVGElement;
  width: number;
  shown: string;
};

/**
 * `most`: number of characters to show. `side`: 1: right of its position, -1: left, 0: centred. `shown`: its full text.
 */
export type EdgeLabel = {
  group: SVGGElement;
  box: SVGRectElement;
  text: SVGTextElement;
  most: number;
  side: number;
  shown: string;
};

/** A part whose classes overlays change. */
type Restyled = {
  group: SVGGElement;
  /** Classes that the part always has. */
  base: string;
};

/** A part that the camera can bring into view: `at` is its center. */
type Placed = Size & { at: Point };

export type BoxPart = Restyled &
  Placed & {
    kind: "box";
    rounding: number;
    /** Labels for the values of its outputs. */
    edgeLabels: EdgeLabel[];
    badge: SVGTextElement | null;
    spark: Sparkline | null;
  };

export type FramePart = Restyled &
  Placed & {
    kind: "frame";
    head: SVGGElement;
    title: SVGTextElement;
    header: SVGGElement;
    box: Frame;
    state: { pill: SVGRectElement; bar: SVGRectElement; text: SVGTextElement };
    titleWidth: number;
    stateEnd: number;
    stateWidth: number;
    /** Text of its state, such as the iteration. */
    stateText: string;
    headerShown?: string;
  };

export type LinePart = Restyled & {
  kind: "line";
  source: string;
  target: string;
  /** Labels of a back edge: the value for the next iteration, and the value that this iteration began with. */
  edgeLabels: { now: EdgeLabel; before: EdgeLabel } | null;
  /** `name`: the text that the label always shows. */
  label: { text: SVGTextElement; name: string } | null;
};

/** A box, frame or edge with the elements that overlays change. */
export type Part = BoxPart | FramePart | LinePart;

export type Parts = Map<string, Part>;

/** A frame with the state of its sticky header. */
export type StickyFrame = {
  id: string;
  cluster: ViewCluster;
  part: FramePart;
  depth: number;
  /** The frame around it. */
  outer?: StickyFrame;
  /** Largest number of sticky headers that are nested inside it. */
  below: number;
  /** Area of its sticky header, if it is shown. */
  stickyArea?: Bounds;
  /** Whether its own state and title are hidden, because the sticky header shows them. */
  hidden?: [state: boolean, title: boolean];
};

/** Position of a frame in the view. */
export type FrameInView = {
  left: number;
  right: number;
  bottom: number;
  /** Upper and lower border of its own header. */
  headerTop: number;
  headerBottom: number;
  /** Right border of its name, and left border of its state. */
  nameEnd: number;
  stateStart: number;
  /** True if enough of the frame is visible for a sticky header. */
  isVisible: boolean;
  /** True if its title or its state is not visible. */
  isTitleHidden: boolean;
  isStateHidden: boolean;
  /** True if the overview covers its state. */
  isUnderOverview: boolean;
};
