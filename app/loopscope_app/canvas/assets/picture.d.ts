// What a laid-out picture is made of, for the checker of JavaScript.

import type { ViewCluster } from "./protocol.js";

export type Point = { x: number; y: number };
export type Size = { width: number; height: number };
export type Area = { left: number; top: number; width: number; height: number };
export type Bounds = { left: number; right: number; top: number; bottom: number };

/** Bezier pieces, and the tips of arrows at its ends. */
export type Line = {
  points: Point[];
  begin: Point | null;
  end: Point | null;
  label: Point | null;
  /** Which end lies in a copy of an unrolled body, for lines that were not laid out by Graphviz. */
  copyEnd?: "source" | "target";
};

/** `margin`: what lanes beside a copy take above and below it. */
export type Frame = Point & Size & { margin?: number };

export type Geometry = Size & {
  /** Middles of boxes. */
  nodes: Record<string, Point>;
  clusters: Record<string, Frame>;
  edges: Record<string, Line>;
  /** That the layout took. */
  milliseconds?: number;
};

/** Groups of SVG, from below to above. */
export type Layers = Record<"frames" | "lines" | "heads" | "labels" | "boxes" | "chips", SVGElement>;

/** What labels keep clear of: boxes, and all else that lies in the picture. */
export type Room = { taken: Bounds[]; crowd: Bounds[] };

/** Graphviz's answer, in its own words (json0). */
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

export type Chip = { group: SVGGElement; box: SVGRectElement; text: SVGTextElement; most: number; side: number; shown: string };

/** What overlays restyle. */
type Restyled = {
  group: SVGGElement;
  /** Classes that it has at any moment. */
  base: string;
};

/** What is brought into sight: its middle and its size. */
type Placed = Size & { at: Point };

export type BoxPart = Restyled &
  Placed & {
    kind: "box";
    rounding: number;
    chips: Chip[];
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
    /** The words of its header. */
    told: string;
    headerShown?: string;
  };

export type LinePart = Restyled & {
  kind: "line";
  source: string;
  target: string;
  /** Of a back edge: the value on its way, and the one before. */
  chips: { now: Chip; before: Chip } | null;
  /** Its text, and the words that it has at any moment. */
  label: { text: SVGTextElement; words: string } | null;
};

/** The elements of one box, frame or line that overlays restyle. */
export type Part = BoxPart | FramePart | LinePart;

export type Parts = Map<string, Part>;

/** A frame as sticky headers know it. */
export type StickyFrame = {
  id: string;
  cluster: ViewCluster;
  part: FramePart;
  depth: number;
  /** The frame round it. */
  outer?: StickyFrame;
  /** How many frames inside it stick, one below the other. */
  below: number;
  /** Where its head sticks, if it does. */
  head?: Bounds;
  /** Whether its own state and title are hidden, because they stick. */
  covers?: [state: boolean, title: boolean];
};

/** Where a frame lies in the view. */
export type FrameInView = {
  left: number;
  right: number;
  bottom: number;
  /** Top and bottom of its own header. */
  upper: number;
  lower: number;
  /** Where its name ends, and where its state begins. */
  named: number;
  stateFrom: number;
  /** Whether enough of the frame is in sight; whether its title and its state are out of it. */
  seen: boolean;
  away: boolean;
  /** Whether the overview lies on its state. */
  below: boolean;
  stateAway: boolean;
};
