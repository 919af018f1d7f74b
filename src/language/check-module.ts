/** Everything that is checked about a module once its text is YAML: its shape, then its meaning. */
import * as Type from 'typebox';
import { checkShape } from './check-shape.js';
import type { KindSet } from './kind-set.js';
import { readLeniently } from './lenient-reading.js';
import type { Located } from './located.js';
import { belowResource } from './misplaced-key.js';
import type { MistakeList, Place } from './mistake.js';
import { readOutline } from './outline.js';
import { Budget, COMPARISONS, reachOf } from './reach.js';
import { checkChoice } from './rules/choice.js';
import { checkCycles } from './rules/dependencies.js';
import { checkExpressions } from './rules/expressions.js';
import { checkIdentities } from './rules/identities.js';
import { checkIds } from './rules/ids.js';
import { checkSupports } from './rules/supports.js';
import { checkTemplates } from './rules/templates.js';
import { checkVariants } from './rules/variants.js';
import { moduleSchemaWith } from './schema.js';
import type { TextLines } from './text-lines.js';

/** The shape of a module without what stands below `resource`, which has rules of its own. */
const FRAME = moduleSchemaWith(Type.Unknown());

export interface ModuleToCheck {
  readonly text: string;
  readonly lines: TextLines;
  readonly kinds: KindSet;
  readonly mistakes: MistakeList;
}

/** Returns the module as it is read. */
export function checkModule(written: Located, { text, lines, kinds, mistakes }: ModuleToCheck): Located {
  const root = readLeniently(written, { kinds, mistakes });
  checkShape(FRAME, root, {
    mistakes,
    path: '',
    label: 'a module',
    expressions: false,
    elsewhere: belowResource(kinds),
  });
  if (root.type !== 'map') return root;
  const outline = readOutline(root, kinds, mistakes);
  const context = { outline, mistakes, lineOf: (place: Place) => lines.positionAt(place.start).line };
  const budget = new Budget(COMPARISONS);
  const reach = reachOf(
    outline.supports.map(({ clause }) => clause),
    budget,
  );
  checkChoice(context, kinds);
  checkIds(context);
  checkCycles(context);
  checkTemplates(context);
  checkSupports(context);
  checkVariants(context, reach);
  checkIdentities(context, reach);
  checkExpressions(context, text);
  if (budget.exhausted) {
    const message = 'too many variants to compare with each other; split the module';
    mistakes.error('too_complex', message, '/resources', root.members.get('resources')?.key ?? root);
  }
  return root;
}
