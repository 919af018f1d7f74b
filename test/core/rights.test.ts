/** Grants: which machines they cover, and what may be granted. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkGrants, type Machine, Rights } from '../../daemon/core/rights.js';
import { matchingAssignments } from '../../src/cli/modules/read-modules.js';
import type { Assignment } from '../../src/contract/assignments.js';
import { ROLES, type Role } from '../../src/contract/rights.js';
import { isFault } from '../../src/kernel/fault.js';
import { isWithin, matches, parseMachineSelector, parseSelector, type Selector } from '../../src/language/selector.js';
import { drawn } from '../support/exhaustive.js';

const NODES = ['a'.repeat(32), 'b'.repeat(32)];
const KEYS = ['env', 'role'];
const VALUES = ['dev', 'prod', 'web'];

const term = fc.oneof(
  fc
    .tuple(fc.constantFrom(...KEYS), fc.constantFrom('=', '!='), fc.constantFrom(...VALUES))
    .map((parts) => parts.join('')),
  fc
    .tuple(
      fc.constantFrom(...KEYS),
      fc.constantFrom('in', 'notin'),
      fc.uniqueArray(fc.constantFrom(...VALUES), { minLength: 1 }),
    )
    .map(([key, operator, values]) => `${key} ${operator} (${values.join(',')})`),
  fc.tuple(fc.constantFrom('', '!'), fc.constantFrom(...KEYS)).map((parts) => parts.join('')),
  fc.constantFrom(...NODES).map((nodeId) => `node_id=${nodeId}`),
);
const selector = fc.oneof(
  fc.constant('*'),
  fc.array(term, { minLength: 1, maxLength: 3 }).map((terms) => terms.join(', ')),
);
const machine: fc.Arbitrary<Machine> = fc.record({
  nodeId: fc.constantFrom(...NODES),
  tags: fc.dictionary(fc.constantFrom(...KEYS), fc.constantFrom(...VALUES)),
});

const selects = (one: Selector, { nodeId, tags }: Machine) => matches(one, { attributes: {}, tags, nodeId });

describe('rights on machines with the same tags', () => {
  it.each([
    ['without grants', null, true],
    ['with grants by tags', ['role=web', 'env!=prod'], true],
    ['with a grant by node IDs', ['role=web', `node_id=${'0'.repeat(32)}`], false],
  ])('%s are the same, or not', (_, selectors, expected) => {
    const grants = selectors?.map((selector) => ({ selector, rights: [] })) ?? null;
    expect(new Rights('operator', grants).areOfTags).toBe(expected);
  });
});

describe('a selector within another', () => {
  it('matches no machine that the other does not', () => {
    fc.assert(
      fc.property(selector, selector, machine, (narrow, wide, one) => {
        const [inner, outer] = [parseMachineSelector(narrow), parseMachineSelector(wide)];
        if (isWithin(inner, outer) && selects(inner, one)) expect(selects(outer, one)).toBe(true);
      }),
      { numRuns: drawn(5_000) },
    );
  });

  it.each([
    ['env=dev', '*', true],
    ['env=dev, role=web', 'env=dev', true],
    ['env=dev', 'env in (dev, test)', true],
    ['env in (dev, test)', 'env=dev', false],
    ['env=dev', 'env', true],
    ['env', 'env=dev', false],
    ['*', 'env=dev', false],
    ['!env', 'env!=prod', true],
    ['env!=prod', '!env', false],
    ['env notin (prod, stage)', 'env!=prod', true],
    ['env!=prod', 'env notin (prod, stage)', false],
    ['role=web', 'env=dev', false],
  ])('%s in %s: %s', (narrow, wide, expected) => {
    expect(isWithin(parseMachineSelector(narrow), parseMachineSelector(wide))).toBe(expected);
  });
});

describe('rights', () => {
  const grants = fc.array(
    fc.record({
      rights: fc.uniqueArray(fc.constantFrom('apply', 'planner', 'deployer', 'exec', 'tag:env'), { minLength: 1 }),
      selector,
    }),
    { minLength: 1, maxLength: 3 },
  );

  it('that cover a scope are held on every machine in it', () => {
    fc.assert(
      fc.property(
        grants,
        selector,
        fc.option(fc.array(selector, { minLength: 1, maxLength: 2 })),
        machine,
        (given, text, scope, one) => {
          const rights = new Rights('operator', given);
          // An assignment's selector knows no node_id; a tag of that name is another thing.
          const assigned = text.includes('node_id') ? parseSelector('*') : parseSelector(text);
          if (!rights.covers('apply', assigned, scope)) return;
          const within = scope === null || scope.some((part) => selects(parseMachineSelector(part), one));
          if (within && selects(assigned, one)) expect(rights.may('apply', one)).toBe(true);
        },
      ),
      { numRuns: drawn(5_000) },
    );
  });

  it('are those of the role, within the grants', () => {
    fc.assert(
      fc.property(grants, machine, (given, one) => {
        const planner = new Rights('planner', given);
        expect(planner.may('apply', one)).toBe(false);
        const limited = new Rights('operator', given);
        const { rights } = limited.on(one);
        expect(rights.length > 0).toBe(limited.may('read', one));
        expect(rights.includes('apply')).toBe(limited.may('apply', one));
      }),
    );
  });

  it('to enrol come by a grant that names them, and else to admins alone', () => {
    const may = (role: Role, rights: string[] | null) =>
      new Rights(role, rights === null ? null : [{ rights, selector: '*' }]).has('enroll');
    expect(ROLES.filter((role) => may(role, null))).toEqual(['admin']);
    expect([may('operator', ['operator']), may('operator', ['enroll'])]).toEqual([false, true]);
    expect(() => checkGrants('operator', [{ rights: ['enroll'], selector: '*' }])).not.toThrow();
    for (const role of ['deployer', 'planner', 'viewer'] as const) {
      expect(may(role, ['enroll'])).toBe(false);
      expect(() => checkGrants(role, [{ rights: ['enroll'], selector: '*' }])).toThrow(/more than the role/);
    }
  });

  it('of tags need the key', () => {
    const one = { nodeId: NODES[0] ?? '', tags: { env: 'dev' } };
    const rights = new Rights('operator', [{ rights: ['tag', 'tag:env'], selector: 'env=dev' }]);
    expect([rights.mayTag('env', one), rights.mayTag('role', one)]).toEqual([true, false]);
    expect(rights.mayTag('env', { ...one, tags: { env: 'prod' } })).toBe(false);
    expect(new Rights('planner', [{ rights: ['tag:env'], selector: '*' }]).mayTag('env', one)).toBe(false);
  });
});

describe('grants', () => {
  const refusal = (role: 'admin' | 'operator' | 'planner', rights: string[], text = 'env=dev') => {
    try {
      checkGrants(role, [{ rights, selector: text }]);
      return null;
    } catch (error) {
      return isFault(error) ? error.message : String(error);
    }
  };

  it.each([
    ['admin', ['read'], '*', 'grants: an admin may do everything everywhere, so grants cannot limit one'],
    ['planner', ['apply'], '*', 'grants: "apply" is more than the role planner may do'],
    ['planner', ['deployer'], '*', 'grants: "deployer" is more than the role planner may do'],
    ['planner', ['tag:env'], '*', 'grants: "tag:env" is more than the role planner may do'],
    ['operator', ['admin'], '*', 'grants: "admin" is no right and no role for one'],
    ['operator', ['king'], '*', 'grants: "king" is no right and no role for one'],
    ['operator', ['tag:a b'], '*', 'grants: "tag:a b" names no key of a tag'],
    [
      'operator',
      ['read'],
      'platform=linux',
      'selector "platform=linux" names platform, which a machine reports about itself',
    ],
    ['operator', ['read'], 'env=', null],
    ['operator', ['deployer', 'exec', 'tag:env'], 'node_id=x', null],
  ] as const)('for %s of %j on %s: %s', (role, rights, text, message) => {
    expect(refusal(role, [...rights], text)).toBe(message);
  });
});

describe('the command line', () => {
  it('takes an assignment of an operator with grants for one of their machines alone', () => {
    const one = { name: 'own', modules: [], selector: '*', scope: ['env=dev', 'env=test'] } as unknown as Assignment;
    const found = (env: string) => matchingAssignments([one], { attributes: {}, tags: { env }, nodeId: 'a' });
    expect([found('dev'), found('test'), found('prod')]).toEqual([[one], [one], []]);
  });
});
