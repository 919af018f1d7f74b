/** What a rule over a whole module works with. */
import type { MistakeList, Place } from '../mistake.js';
import type { Outline } from '../outline.js';

export interface RuleContext {
  readonly outline: Outline;
  readonly mistakes: MistakeList;
  /** The line that a place begins on, from 1. */
  lineOf(place: Place): number;
}

export type Rule = (context: RuleContext) => void;
