/** The module language by examples: a file per case in `cases/`, refreshed with `UPDATE_CASES=1`. */
import { createHash } from 'node:crypto';
import { describe, expect } from 'vitest';
import { isFault } from '../../src/kernel/fault.js';
import { type Diagnostic, renderDiagnostic } from '../../src/language/diagnostic.js';
import type { AgentFacts } from '../../src/language/evaluate.js';
import { type FindFile, isTextPath } from '../../src/language/files-beside.js';
import type { SecretRefusal } from '../../src/language/filling.js';
import { entriesOf, type GivenValues } from '../../src/language/inputs/choose.js';
import { parseValueSet } from '../../src/language/inputs/value-set.js';
import { parseAssignments } from '../../src/language/parse-assignments.js';
import { moduleParser, parseModule } from '../../src/language/parse-module.js';
import { resolve } from '../../src/language/resolve.js';
import { STANDARD_KINDS } from '../../src/language/schema.js';
import { matches, parseSelector } from '../../src/language/selector.js';
import { runCases, SAMPLE_KINDS } from '../support/language.js';

type Kinds = 'sample' | undefined;

const parserOf = (kinds: Kinds) => (kinds === 'sample' ? moduleParser(SAMPLE_KINDS) : parseModule);
const kindsOf = (kinds: Kinds) => (kinds === 'sample' ? SAMPLE_KINDS : STANDARD_KINDS);

/** A fault as a person and a program see it. */
function outcomeOf(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    if (!isFault(error)) throw error;
    const { code, message, hint, errors, data } = error;
    return { fault: { code, message, hint, errors, data } };
  }
}

/** Text as it is, or text many times over; `<n>` in it is the turn, from 0. */
type Piece = string | { readonly repeat: string; readonly times: number };

/** Returns a function that finds files among these texts. */
const findIn =
  (files: Readonly<Record<string, string>>): FindFile =>
  (path) => {
    const text = files[path];
    if (text === undefined) return 'does not exist beside the module';
    const sha256 = createHash('sha256').update(text).digest('hex');
    return { sha256, size: text.length, ...(isTextPath(path) && { text }) };
  };

interface ModuleCase {
  readonly kinds?: Kinds;
  /** Texts of the files beside the module, by path. */
  readonly files?: Readonly<Record<string, string>>;
  readonly input: string | readonly Piece[];
  /** Adds the definition to what is expected. */
  readonly definition?: boolean;
  /** Shows each mistake as a person sees it, instead of its fields. */
  readonly excerpts?: boolean;
  /** Compares so many diagnostics and the last one, and counts those between. */
  readonly first?: number;
}

const textOf = (input: ModuleCase['input']): string =>
  typeof input === 'string' ? input : input.map(textOfPiece).join('');

const textOfPiece = (piece: Piece): string =>
  typeof piece === 'string'
    ? piece
    : Array.from({ length: piece.times }, (_, turn) => piece.repeat.replaceAll('<n>', String(turn))).join('');

const fieldsOf = ({ severity, code, message, path, line, column, endColumn }: Diagnostic) => ({
  [severity]: code,
  at: `${line}:${column}${endColumn === undefined ? '' : `-${endColumn}`}`,
  path,
  message,
});

function outcomeOfModule({ kinds, files, input, definition, excerpts, first = Number.POSITIVE_INFINITY }: ModuleCase) {
  const source = textOf(input);
  const parsed = parserOf(kinds)(source, files === undefined ? undefined : findIn(files));
  expect(parsed.definition === null).toBe(parsed.diagnostics.some(({ severity }) => severity === 'error'));
  const shown = (diagnostic: Diagnostic) =>
    excerpts
      ? {
          [diagnostic.severity]: diagnostic.code,
          shown: renderDiagnostic(diagnostic, { file: 'web.orch.yaml', source }),
        }
      : fieldsOf(diagnostic);
  const between = parsed.diagnostics.length - first - 1;
  const diagnostics =
    between > 0
      ? [
          ...parsed.diagnostics.slice(0, first).map(shown),
          `${between} more`,
          ...parsed.diagnostics.slice(-1).map(shown),
        ]
      : parsed.diagnostics.map(shown);
  return definition ? { diagnostics, definition: parsed.definition } : diagnostics;
}

describe('parse', () => runCases('parse', outcomeOfModule));

describe('kinds', () => runCases('kinds', outcomeOfModule));

describe('resolve', () => {
  interface Given {
    readonly kinds?: Kinds;
    readonly modules: readonly string[];
    /** Texts of the files beside the modules, by path. */
    readonly files?: Readonly<Record<string, string>>;
    /** Texts of value sets, each with its name. */
    readonly values?: Readonly<Record<string, string>>;
    readonly agent?: Partial<AgentFacts>;
    /** A value, or why the agent does not get it. */
    readonly secrets?: Readonly<Record<string, string | SecretRefusal>>;
  }
  const agent: AgentFacts = {
    node_id: '0123456789abcdef0123456789abcdef',
    name: 'web-01',
    attributes: { platform: 'linux', distro: 'debian', init_system: 'systemd', arch: 'x86_64' },
    tags: {},
  };
  runCases('resolve', ({ kinds, modules, files = {}, agent: given, secrets = {}, values = {} }: Given) => {
    const parsed = modules.map((text) => {
      const { definition, diagnostics } = parserOf(kinds)(text, findIn(files));
      if (definition === null) throw new Error(`the case has a wrong module: ${JSON.stringify(diagnostics)}`);
      return { name: definition.name, definition };
    });
    const secret = (name: string) => {
      const value = Object.hasOwn(secrets, name) ? secrets[name] : undefined;
      return typeof value === 'string' ? { value, tag: 'a1b2' } : (value ?? null);
    };
    const sets = Object.entries(values).map(([name, text]) => {
      const { set, diagnostics } = parseValueSet(text);
      if (set === null) throw new Error(`the case has a wrong value set: ${JSON.stringify(diagnostics)}`);
      return { name, set };
    });
    const all: GivenValues = {
      layers: [sets.flatMap(({ name, set }) => entriesOf(set, `${name}.values.yaml`))],
      rank: sets.flatMap(({ set }) => set.rank ?? []),
    };
    return outcomeOf(() => {
      const { checks, ...rest } = resolve(
        { modules: parsed, agent: { ...agent, ...given }, secret, values: all },
        kindsOf(kinds),
      );
      return checks.length === 0 ? rest : { checks, ...rest };
    });
  });
});

describe('selector', () => {
  interface Given {
    readonly agents: Readonly<Record<string, Pick<AgentFacts, 'attributes' | 'tags'>>>;
    readonly selectors: readonly string[];
  }
  runCases('selector', ({ agents, selectors }: Given) =>
    Object.fromEntries(
      selectors.map((text) => [
        text,
        outcomeOf(() => {
          const selector = parseSelector(text);
          return Object.keys(agents).filter((name) => {
            const agent = agents[name];
            return agent !== undefined && matches(selector, agent);
          });
        }),
      ]),
    ),
  );
});

describe('assignments', () =>
  runCases('assignments', ({ input }: { readonly input: string }) => {
    const { assignments, diagnostics } = parseAssignments(input);
    expect(assignments === null).toBe(diagnostics.length > 0);
    const shown = diagnostics.map((one) => renderDiagnostic(one, { file: 'assignments.yaml', source: input }));
    return assignments ?? shown;
  }));

describe('values', () =>
  runCases('values', ({ input }: Pick<ModuleCase, 'input'>) => {
    const source = textOf(input);
    const { set, diagnostics } = parseValueSet(source);
    const shown = diagnostics.map((one) => renderDiagnostic(one, { file: 'prod.values.yaml', source }));
    return shown.length > 0 ? shown : set;
  }));
