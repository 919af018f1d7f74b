/** Properties of the health checks of every module on every agent. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { stringify } from 'yaml';
import { isFault } from '../../src/kernel/fault.js';
import { clauseMatches } from '../../src/language/clause.js';
import { secondsOf } from '../../src/language/compile-checks.js';
import { OPEN } from '../../src/language/parse-expression.js';
import { parseModule } from '../../src/language/parse-module.js';
import { resolve } from '../../src/language/resolve.js';
import type { CheckEntry } from '../../src/language/schema.js';
import { CHECK_VALIDATORS, type CheckKind } from '../../src/resources/checks/check-kinds.js';
import { maskResource } from '../../src/resources/tainted-body.js';
import { drawn } from '../support/exhaustive.js';
import { agent, clause } from '../support/language.js';

const SECRET = 'hunter2hunter2';
const secret = `${OPEN} secrets.s }}`;

const common = {
  name: fc.constantFrom('page', 'page', 'other'),
  when: clause,
  within: fc.constantFrom('1s', '30s', '2m', '15m'),
};
const kinds = {
  http: fc.record(
    {
      url: fc.constantFrom('http://h/', `http://h/${secret}`),
      status: fc.constantFrom(204, '2xx'),
      contains: fc.constant('a'),
    },
    { requiredKeys: ['url'] },
  ),
  tcp: fc.record({ host: fc.constantFrom('h', '::1', `${OPEN} agent.name }}`), port: fc.constantFrom(1, '65535') }),
  unit: fc.constantFrom('nginx', 'nginx.service'),
  script: fc.record({ program: fc.constant('pwsh'), run: fc.constantFrom('exit 0', `echo ${secret}`) }),
};
const entry: fc.Arbitrary<CheckEntry> = fc.oneof(
  ...Object.entries(kinds).map(([kind, body]) =>
    fc
      .tuple(fc.record(common, { requiredKeys: [] }), body as fc.Arbitrary<unknown>)
      .map(([rest, value]) => ({ ...rest, [kind]: value }) as CheckEntry),
  ),
);
const modules = fc
  .array(fc.array(entry, { maxLength: 6 }), { maxLength: 4 })
  .map((lists) => lists.map((verify, index) => ({ name: `m${index}`, supports: [{}], verify })));

it('come in the order of modules and entries, for the agents of their clauses, under names of their own', () => {
  fc.assert(
    fc.property(modules, agent, (given, one) => {
      const sources = given.map((module) => {
        const { definition, diagnostics } = parseModule(stringify(module));
        expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
        if (definition === null) throw new Error('the module is refused');
        return { name: module.name, definition };
      });
      const wanted = given.flatMap(({ name, verify }) =>
        verify
          .filter(({ when }) => when === undefined || clauseMatches(when, one))
          .map((found) => [name, found] as const),
      );
      const found = () =>
        resolve({ modules: sources, agent: one, secret: () => ({ value: SECRET, tag: 'ab12' }) }).checks;
      const checks = found();
      expect(found()).toEqual(checks);
      expect(checks.map(({ module, kind }) => [module, kind])).toEqual(
        wanted.map(([module, one]) => [module, Object.keys(kinds).find((kind) => kind in one)]),
      );
      for (const [index, check] of checks.entries()) {
        const { within = '30s' } = wanted[index]?.[1] ?? {};
        expect(check.within_secs).toBe(secondsOf(within ?? '30s'));
        expect(check.timeout_secs).toBe(Math.min(10, check.within_secs));
        const body = check.kind === 'unit' ? check.body.name : check.body;
        expect(CHECK_VALIDATORS[check.kind as CheckKind].problems(body)).toEqual([]);
        expect(check.name).not.toContain(SECRET);
        expect(JSON.stringify(maskResource(check))).not.toContain(SECRET);
      }
      const names = checks.map(({ module, name }) => `${module} ${name}`);
      expect(new Set(names).size).toBe(names.length);
    }),
    { numRuns: drawn(300) },
  );
});

it('of all modules together are bounded in number and size', () => {
  const many = (count: number, run: string) =>
    Array.from({ length: count }, (_, index) => {
      const verify = Array.from({ length: 100 }, () => ({ script: { program: 'sh' as const, run } }));
      return { name: `m${index}`, definition: { name: `m${index}`, supports: [{}], verify } };
    });
  const one = { node_id: '0'.repeat(32), name: 'n', attributes: { platform: 'linux' }, tags: {} };
  const codeOf = (modules: ReturnType<typeof many>) => {
    try {
      return resolve({ modules, agent: one, secret: () => null }).checks.length;
    } catch (error) {
      if (isFault(error)) return error.message;
      throw error;
    }
  };
  expect(codeOf(many(10, 'exit 0'))).toBe(1000);
  expect(codeOf(many(11, 'exit 0'))).toContain('have 1100 health checks, and at most 1000 are allowed');
  expect(codeOf(many(1, 'x'.repeat(6_000)))).toContain('move long scripts into files');
  const { diagnostics } = parseModule(
    stringify({ ...many(1, 'exit 0')[0]?.definition, verify: Array.from({ length: 101 }, () => ({ unit: 'a' })) }),
  );
  expect(diagnostics.map(({ message }) => message)).toContain('"verify" has 101 entries, and at most 100 are allowed');
});
