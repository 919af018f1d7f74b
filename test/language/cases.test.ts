/** The module language by examples: a file per case in `cases/`, refreshed with `UPDATE_CASES=1`. */
import { describe, expect } from 'vitest';
import { isFault } from '../../src/kernel/fault.js';
import type { AgentFacts } from '../../src/language/fill.js';
import { moduleParser, parseModule } from '../../src/language/parse-module.js';
import { resolve } from '../../src/language/resolve.js';
import { STANDARD_KINDS } from '../../src/language/schema.js';
import { matches, parseSelector } from '../../src/language/selector.js';
import { runCases } from './support/case-file.js';
import { SAMPLE_KINDS } from './support/sample-kinds.js';

type Kinds = 'sample' | undefined;

const parserOf = (kinds: Kinds) => (kinds === 'sample' ? moduleParser(SAMPLE_KINDS) : parseModule);
const kindsOf = (kinds: Kinds) => (kinds === 'sample' ? SAMPLE_KINDS : STANDARD_KINDS);

/** What a fault tells a person and a program. */
function outcomeOf(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    if (!isFault(error)) throw error;
    const { code, message, hint, errors, data } = error;
    return { fault: { code, message, hint, errors, data } };
  }
}

describe('parse', () => {
  interface Given {
    readonly kinds?: Kinds;
    readonly input: string;
    /** Adds the definition to what is expected. */
    readonly definition?: boolean;
  }
  runCases('parse', ({ kinds, input, definition }: Given) => {
    const parsed = parserOf(kinds)(input);
    expect(parsed.definition === null).toBe(parsed.diagnostics.some(({ severity }) => severity === 'error'));
    const diagnostics = parsed.diagnostics.map(({ severity, code, message, path, line, column, endColumn }) => ({
      [severity]: code,
      at: `${line}:${column}${endColumn === undefined ? '' : `-${endColumn}`}`,
      path,
      message,
    }));
    return definition ? { diagnostics, definition: parsed.definition } : diagnostics;
  });
});

describe('resolve', () => {
  interface Given {
    readonly kinds?: Kinds;
    readonly modules: readonly string[];
    readonly agent?: Partial<AgentFacts>;
    readonly secrets?: Readonly<Record<string, string>>;
  }
  const agent: AgentFacts = {
    node_id: '0123456789abcdef0123456789abcdef',
    name: 'web-01',
    attributes: { platform: 'linux', distro: 'debian', init_system: 'systemd', arch: 'x86_64' },
    tags: {},
  };
  runCases('resolve', ({ kinds, modules, agent: given, secrets = {} }: Given) => {
    const parsed = modules.map((text) => {
      const { definition, diagnostics } = parserOf(kinds)(text);
      if (definition === null) throw new Error(`the case has a wrong module: ${JSON.stringify(diagnostics)}`);
      return { name: definition.name, definition };
    });
    const secret = (name: string) => {
      const value = Object.hasOwn(secrets, name) ? secrets[name] : undefined;
      return value === undefined ? null : { value, tag: 'a1b2' };
    };
    return outcomeOf(() => resolve({ modules: parsed, agent: { ...agent, ...given }, secret }, kindsOf(kinds)));
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
