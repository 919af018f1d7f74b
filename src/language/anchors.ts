/** Anchors of a text and the aliases that repeat their values: each has to stand before, and all together stay within bounds. */
import type { Located } from './located.js';
import type { MistakeList, Place } from './mistake.js';
import { quoted } from './printable.js';
import { YAML_LIMITS } from './yaml-guard.js';

/** How many values there are in one, itself included, and how deep they nest. */
interface Extent {
  readonly size: number;
  readonly depth: number;
}

interface Anchor extends Place {
  readonly name: string;
  /** Null while the value is being read. */
  value: (Extent & { readonly located: Located }) | null;
  isUsed: boolean;
}

/** Values that aliases may add up to. */
const MOST_VALUES = YAML_LIMITS.tokens;

export class Anchors {
  private readonly mistakes: MistakeList;
  /** The last one of each name. */
  private readonly known = new Map<string, Anchor>();
  private readonly all: Anchor[] = [];
  /** Of values with an anchor, which aliases repeat. */
  private readonly extents = new Map<Located, Extent>();
  private left: number = MOST_VALUES;

  constructor(mistakes: MistakeList) {
    this.mistakes = mistakes;
  }

  /** Notes that the value of an anchor begins; `near` is where it belongs. */
  begin(name: string | undefined, text: string, near: Place): Anchor | null {
    if (name === undefined) return null;
    const start = text.indexOf(`&${name}`, near.start);
    const anchor: Anchor = { name, start, end: start + name.length + 1, value: null, isUsed: false };
    this.known.set(name, anchor);
    this.all.push(anchor);
    return anchor;
  }

  end(anchor: Anchor | null, located: Located): void {
    if (anchor === null) return;
    const extent = this.extentOf(located);
    this.extents.set(located, extent);
    anchor.value = { located, ...extent };
  }

  /** The value that an alias stands for; null when it cannot be had, which is reported. */
  valueOf(name: string, place: Place, path: string): Located | null {
    const anchor = this.known.get(name);
    const problem = anchor === undefined ? unknownAnchor(name) : this.problemOf(anchor, path);
    if (anchor) anchor.isUsed = true;
    if (problem === null) return anchor?.value?.located ?? null;
    this.mistakes.error('yaml_alias', problem, path, place);
    return null;
  }

  /** A value that only begins with `&` reads as nothing at all. */
  warnOfUnused(): void {
    for (const anchor of this.all) {
      if (anchor.isUsed) continue;
      const message = `no alias uses the anchor ${quoted(anchor.name)}; put a value that begins with "&" in quotes`;
      this.mistakes.warning('yaml_anchor', message, '', anchor);
    }
  }

  private problemOf({ name, value }: Anchor, path: string): string | null {
    if (value === null) return `the value of the anchor ${quoted(name)} holds this alias of it`;
    this.left -= value.size;
    if (this.left < 0) return `the aliases of this file stand for more than ${MOST_VALUES} values`;
    const depth = path.split('/').length + value.depth;
    return depth > YAML_LIMITS.depth ? `with this alias, the file nests deeper than ${YAML_LIMITS.depth} levels` : null;
  }

  private extentOf(node: Located): Extent {
    if (node.type === 'scalar') return { size: 1, depth: 1 };
    const known = this.extents.get(node);
    if (known !== undefined) return known;
    const inner = node.type === 'list' ? node.items : [...node.members.values()].map(({ value }) => value);
    let size = 1;
    let depth = 0;
    for (const one of inner) {
      const extent = this.extentOf(one);
      size += extent.size;
      depth = Math.max(depth, extent.depth);
    }
    return { size, depth: depth + 1 };
  }
}

const unknownAnchor = (name: string): string =>
  `no anchor ${quoted(name)} stands before this alias; put a value that begins with "*" in quotes`;
