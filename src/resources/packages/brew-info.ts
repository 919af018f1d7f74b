/** What `brew info --json=v2` tells of formulae and casks. */
import { recordsOf, textOf, textsOf } from '../json-answer.js';

export interface BrewPackage {
  /** All that it can be called by. */
  readonly names: readonly string[];
  /** The versions that are installed, the last one installed last; with the revision of the formula. */
  readonly installed: readonly string[];
  /** The version that an installation would bring. */
  readonly newest: string;
  readonly isOutdated: boolean;
  readonly isPinned: boolean;
}

/** Null when it is not that JSON. */
export function parseBrewInfo(text: string): readonly BrewPackage[] | null {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    return null;
  }
  const [root] = recordsOf(answer);
  if (root === undefined) return null;
  return [...recordsOf(root.formulae).map(formulaOf), ...recordsOf(root.casks).map(caskOf)];
}

type Fields = Readonly<Record<string, unknown>>;

function formulaOf(formula: Fields): BrewPackage {
  const [versions = {}] = recordsOf(formula.versions);
  const stable = textOf(versions.stable);
  const revision = typeof formula.revision === 'number' && formula.revision > 0 ? `_${formula.revision}` : '';
  return {
    names: namesOf([formula.name, formula.full_name, formula.oldname], [formula.aliases, formula.oldnames]),
    installed: recordsOf(formula.installed).map(({ version }) => textOf(version)),
    newest: `${stable}${revision}`,
    isOutdated: formula.outdated === true,
    isPinned: formula.pinned === true,
  };
}

const caskOf = (cask: Fields): BrewPackage => ({
  names: namesOf([cask.token, cask.full_token], [cask.old_tokens]),
  installed: typeof cask.installed === 'string' ? [cask.installed] : [],
  newest: textOf(cask.version),
  isOutdated: cask.outdated === true,
  isPinned: cask.pinned === true,
});

const namesOf = (single: readonly unknown[], lists: readonly unknown[]): readonly string[] => [
  ...single.filter((name): name is string => typeof name === 'string'),
  ...lists.flatMap(textsOf),
];

/** True when a version is that one, whatever the revision that Homebrew counts behind it. */
export const isSameBrewVersion = (one: string, other: string): boolean =>
  one === other || withoutRevision(one) === other || one === withoutRevision(other);

const withoutRevision = (version: string): string => version.replace(/_\d+$/, '');
