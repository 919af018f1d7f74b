/** Enrolment tokens of operators with grants: what they may make, and what is left of it when an agent redeems one. */
import { describe, expect, it } from 'vitest';
import { markOperatorRemoved, putOperator, setOperatorRights } from '../../daemon/auth/operator-store.js';
import type { RequestContext } from '../../daemon/core/domain-event.js';
import { Rights } from '../../daemon/core/rights.js';
import type { NewEnrolmentToken } from '../../src/contract/enrolment-tokens.js';
import type { Grant } from '../../src/contract/rights.js';
import { Fleet, OPERATOR } from '../support/fleet.js';
import { newIdentity } from '../support/identity.js';

const MAKER = 'd'.repeat(32);
const DEV: readonly Grant[] = [{ rights: ['operator', 'enroll', 'tag:env'], selector: 'env=dev' }];
const WITHOUT_ENROLL: readonly Grant[] = [{ rights: ['operator', 'tag:env'], selector: 'env=dev' }];

const contextOf = (id: string, name: string, grants: readonly Grant[]): RequestContext => ({
  ...OPERATOR,
  rights: new Rights('operator', grants),
  actor: { id, name, type: 'operator' },
});

/** A fleet with an admin and the operator dora, and what dora does in it. */
async function start(grants: readonly Grant[] = DEV) {
  const fleet = await Fleet.start();
  await fleet.addAdmin(OPERATOR.actor.id);
  await putOperator(fleet.db, {
    operator_id: MAKER,
    public_key: 'd'.repeat(64),
    username: 'dora',
    role: 'operator',
    grants,
    bootstrap: 0,
    added_at: 1,
    added_by: 'system',
  });
  const dora = contextOf(MAKER, 'dora', grants);
  const make = (wanted: NewEnrolmentToken) => fleet.tokens.create(dora, wanted);
  const gives = (tags: Record<string, string>, more: Partial<NewEnrolmentToken> = {}) =>
    make({ tags, ...more }).then(
      () => 'made',
      (error) => `${error.code} ${error.data?.right}`,
    );
  const grant = (changed: readonly Grant[]) =>
    setOperatorRights(fleet.db, MAKER, { role: 'operator', grants: changed });
  return { fleet, dora, make, gives, grant };
}

/** What a machine with the token becomes: the verdict, its status and its tags. */
async function comes(fleet: Fleet, { token }: { readonly token: string }, identity = newIdentity()) {
  const agent = await fleet.join(identity, { enrolment_token: token });
  await agent.message(1);
  const verdict = agent.received.find((message) => message.type === 'token_verdict');
  const { status, tags } = await fleet.agents.get(agent.nodeId);
  return [verdict?.type === 'token_verdict' ? verdict.verdict : null, status, tags];
}

const pendingWith = async (fleet: Fleet, tags: Record<string, string>) => {
  const identity = newIdentity();
  const agent = await fleet.join(identity);
  await fleet.tags.replace(OPERATOR, agent.nodeId, tags);
  await fleet.gone(agent);
  return identity;
};

describe('making a token', () => {
  it('takes the right to enrol a machine with exactly its tags', async () => {
    const { gives } = await start();
    expect(await gives({ env: 'dev' })).toBe('made');
    expect(await gives({ env: 'dev', role: 'web' }, { auto_approve: true })).toBe('made');
    expect(await gives({ env: 'prod' })).toBe('not_granted enroll');
    expect(await gives({ role: 'web' })).toBe('not_granted enroll');
    expect(await gives({})).toBe('not_granted enroll');
  });

  it('takes the right to every protected key', async () => {
    const { fleet, gives } = await start([{ rights: ['operator', 'enroll'], selector: 'env=dev' }]);
    expect(await gives({ env: 'dev' })).toBe('not_granted tag:env');
    const other = await start();
    await putOperator(other.fleet.db, {
      operator_id: 'e'.repeat(32),
      public_key: 'e'.repeat(64),
      username: 'eve',
      role: 'operator',
      grants: [{ rights: ['read'], selector: 'vault=yes' }],
      bootstrap: 0,
      added_at: 1,
      added_by: 'system',
    });
    expect(await other.gives({ env: 'dev', vault: 'yes' })).toBe('not_granted tag:vault');
    expect(await fleet.tokens.list(OPERATOR)).toEqual([]);
  });

  it('that approves takes the right to approve there', async () => {
    const { gives } = await start([{ rights: ['enroll', 'tag', 'tag:env'], selector: 'env=dev' }]);
    expect(await gives({ env: 'dev' })).toBe('made');
    expect(await gives({ env: 'dev' }, { auto_approve: true })).toBe('not_granted approve-agents');
  });

  it('is not given by a role in a grant, nor by a selector that names node IDs', async () => {
    expect(await (await start(WITHOUT_ENROLL)).gives({ env: 'dev' })).toBe('not_granted enroll');
    const node = 'f'.repeat(32);
    for (const selector of [`node_id=${node}`, `node_id!=${node}`, `node_id notin (${node})`, '!node_id', 'node_id']) {
      const { gives } = await start([{ rights: ['operator', 'enroll', 'tag:node_id'], selector }]);
      expect([selector, await gives({})]).toEqual([selector, 'not_granted enroll']);
      expect([selector, await gives({ node_id: node })]).toEqual([selector, 'not_granted enroll']);
    }
  });
});

describe('a token of an operator with grants', () => {
  it('lets a machine in with its tags', async () => {
    const { fleet, make } = await start();
    const token = await make({ tags: { env: 'dev', role: 'web' }, auto_approve: true });
    expect(await comes(fleet, token)).toEqual(['accepted', 'approved', { env: 'dev', role: 'web' }]);
  });

  it.each([
    ['the right to enrol', WITHOUT_ENROLL],
    ['the machines', [{ rights: ['operator', 'enroll', 'tag:env'], selector: 'env=test' }]],
    ['the right to the key', [{ rights: ['operator', 'enroll'], selector: 'env=dev' }]],
    ['the right to approve', [{ rights: ['enroll', 'tag', 'tag:env'], selector: 'env=dev' }]],
  ])('counts as revoked when its maker has lost %s', async (_lost, left) => {
    const { fleet, make, grant } = await start();
    const token = await make({ tags: { env: 'dev' }, auto_approve: true });
    await grant(left);
    expect(await comes(fleet, token)).toEqual(['revoked', 'pending', {}]);
    expect(await fleet.tokens.list(OPERATOR)).toEqual([]);
  });

  it('counts as revoked when a key of it has become protected since', async () => {
    const { fleet, make } = await start();
    const token = await make({ tags: { env: 'dev', vault: 'yes' } });
    await putOperator(fleet.db, {
      operator_id: 'e'.repeat(32),
      public_key: 'e'.repeat(64),
      username: 'eve',
      role: 'operator',
      grants: [{ rights: ['read'], selector: 'vault=yes' }],
      bootstrap: 0,
      added_at: 1,
      added_by: 'system',
    });
    expect(await comes(fleet, token)).toEqual(['revoked', 'pending', {}]);
  });

  it('counts as revoked when its maker is removed, or has only the role left', async () => {
    const { fleet, make } = await start();
    const token = await make({ tags: { env: 'dev' }, auto_approve: true, uses: 2 });
    await setOperatorRights(fleet.db, MAKER, { role: 'operator', grants: null });
    expect(await comes(fleet, token)).toEqual(['revoked', 'pending', {}]);
    await setOperatorRights(fleet.db, MAKER, { role: 'operator', grants: DEV });
    await markOperatorRemoved(fleet.db, MAKER, { removed_at: 2, removed_by: 'x' });
    expect(await comes(fleet, token)).toEqual(['revoked', 'pending', {}]);
  });
});

describe('a machine that is known already', () => {
  it('keeps its tags where the grants of the maker do not reach', async () => {
    const { fleet, make } = await start();
    const token = await make({ tags: { env: 'dev' }, auto_approve: true, uses: 5 });
    const known: readonly Record<string, string>[] = [{ env: 'prod' }, { role: 'db' }];
    for (const tags of known) {
      const identity = await pendingWith(fleet, tags);
      expect(await comes(fleet, token, identity)).toEqual(['revoked', 'pending', tags]);
    }
    expect(await fleet.tokens.list(OPERATOR)).toMatchObject([{ uses_left: 5 }]);
  });

  it('is not let in where its own tags take it out of the grants', async () => {
    const grants = [{ rights: ['operator', 'enroll', 'tag:env'], selector: 'env=dev, vault!=yes' }];
    const { fleet, make } = await start(grants);
    const token = await make({ tags: { env: 'dev' }, auto_approve: true });
    const tags = { env: 'dev', vault: 'yes' };
    expect(await comes(fleet, token, await pendingWith(fleet, tags))).toEqual(['revoked', 'pending', tags]);
  });

  it('is let in within the grants, and by a token of an admin in any case', async () => {
    const { fleet, make } = await start();
    const token = await make({ tags: { env: 'dev', role: 'web' }, auto_approve: true });
    const dev = await pendingWith(fleet, { env: 'dev' });
    expect(await comes(fleet, token, dev)).toEqual(['accepted', 'approved', { env: 'dev', role: 'web' }]);
    const any = await fleet.tokens.create(OPERATOR, { tags: { env: 'dev' }, auto_approve: true });
    const prod = await pendingWith(fleet, { env: 'prod', role: 'db' });
    expect(await comes(fleet, any, prod)).toEqual(['accepted', 'approved', { env: 'dev', role: 'db' }]);
  });
});

describe('tokens of others', () => {
  it('are neither listed nor revoked, as if there were none', async () => {
    const { fleet, dora, make } = await start();
    const { id } = await fleet.tokens.create(OPERATOR, { tags: { env: 'dev' } });
    const own = await make({ tags: { env: 'dev' } });
    expect((await fleet.tokens.list(dora)).map((token) => token.id)).toEqual([own.id]);
    expect((await fleet.tokens.list(OPERATOR)).map((token) => token.id)).toEqual([id, own.id]);
    const refusal = (tokenId: string) => fleet.tokens.revoke(dora, tokenId).catch((error) => error);
    const [hidden, unknown] = [await refusal(id), await refusal(`${id.slice(0, -1)}0`)];
    expect(hidden.code).toBe('enrolment_token_not_found');
    expect(hidden.message.replace(id, '')).toBe(unknown.message.replace(`${id.slice(0, -1)}0`, ''));
    await fleet.tokens.revoke(dora, own.id);
    expect((await fleet.tokens.list(OPERATOR)).map((token) => token.id)).toEqual([id]);
  });
});
