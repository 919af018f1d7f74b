/** Login, sessions and operators. */
import { publicKeyOfKeyObject } from '../../../src/identity/key-object.js';
import { proveRotation } from '../../../src/identity/key-rotation.js';
import { signNonce } from '../../../src/identity/login-binding.js';
import { newPerson, type World } from '../world.js';

const WEAK_KEY = `01${'00'.repeat(31)}`;

export async function logins(world: World): Promise<void> {
  const person = newPerson();
  const { key, publicKey } = person;
  await world.refuses('createChallenge', { as: null, body: { public_key: 'nonsense' } }, 'invalid_public_key');
  await world.refuses('createChallenge', { as: null, body: { public_key: publicKey } }, 'unknown_operator');
  const added = await world.gives('addOperator', { body: { public_key: publicKey, username: 'ada' } }, 201);
  const login = { public_key: publicKey, signature: 'ab'.repeat(64) };
  const verify = (body: object, code: string) => world.refuses('verifyChallenge', { as: null, body }, code);
  await verify({ ...login, public_key: WEAK_KEY }, 'invalid_public_key');
  await verify({ ...login, signature: 'ab' }, 'invalid_signature');
  await verify(login, 'signature_verification_failed');
  const replayed = signNonce(key, Buffer.alloc(32));
  await verify({ ...login, signature: replayed }, 'signature_verification_failed');
  const token = await world.login(person);
  await world.gives('getSession', { token }, 200);
  await world.gives('endSession', { token }, 204);
  await world.refuses('getSession', { token }, 'unauthenticated');
  await world.gives('removeOperator', { params: { operator_id: added.operator_id } }, 204);
}

export async function operators(world: World): Promise<void> {
  const { publicKey } = newPerson();
  const add = (body: object, code: string) =>
    world.refuses('addOperator', { body: { public_key: publicKey, username: 'bob', ...body } }, code);
  await add({ public_key: WEAK_KEY }, 'invalid_public_key');
  await add({ username: 'a b' }, 'invalid_username');
  await add({ role: 'king' }, 'invalid_role');
  await add({ username: 'root' }, 'operator_exists');
  await add({ public_key: world.people.viewer.publicKey }, 'operator_exists');
  const listed: readonly { operator_id: string; username: string }[] = await world.gives('listOperators', {}, 200);
  const root = { params: { operator_id: listed.find(({ username }) => username === 'root')?.operator_id ?? '' } };
  await world.gives('getOperator', root, 200);
  await world.refuses('getOperator', {}, 'operator_not_found');
  await world.refuses('removeOperator', {}, 'operator_not_found');
  await world.refuses('removeOperator', root, 'last_admin');
  await rotations(world);
  await rights(world);
  await ends(world);
  await namesThatPass(world);
}

/** The role and the grants of an operator are changed, and what they give is told. */
async function rights(world: World): Promise<void> {
  const { publicKey } = newPerson();
  const grants = [{ rights: ['deployer', 'tag:env'], selector: 'env=dev' }];
  const body = { public_key: publicKey, username: 'gina', grants };
  const wrong = (change: object) => world.refuses('addOperator', { body: { ...body, ...change } }, 'invalid_grant');
  await wrong({ role: 'admin' });
  await wrong({ role: 'planner' });
  await wrong({ grants: [{ rights: ['king'], selector: 'env=dev' }] });
  await wrong({ grants: [{ rights: ['read'], selector: 'platform=linux' }] });
  const gina = await world.gives('addOperator', { body }, 201);
  const params = { operator_id: gina.operator_id };
  const held = await world.gives('getOperatorRights', { params }, 200);
  if (held.tag_keys.join() !== 'env' || !held.rights.includes('apply')) throw new Error(JSON.stringify(held));
  await world.refuses('getOperatorRights', { params, query: { node: 'none' } }, 'agent_not_found');
  await world.refuses('getOperatorRights', {}, 'operator_not_found');
  const set = (change: object) => ({ params, body: { grants: null, ...change } });
  await world.refuses('setOperatorGrants', set({ role: 'king' }), 'invalid_role');
  await world.refuses('setOperatorGrants', set({ role: 'admin', grants }), 'invalid_grant');
  await world.refuses('setOperatorGrants', { ...set({}), params: { operator_id: 'none' } }, 'operator_not_found');
  const changed = await world.gives('setOperatorGrants', set({ role: 'planner' }), 200);
  if (changed.role !== 'planner' || changed.grants !== undefined) throw new Error(JSON.stringify(changed));
  const listed: readonly { operator_id: string; username: string }[] = await world.gives('listOperators', {}, 200);
  const root = listed.find(({ username }) => username === 'root')?.operator_id ?? '';
  await world.refuses('setOperatorGrants', { ...set({ role: 'viewer' }), params: { operator_id: root } }, 'last_admin');
  await world.gives('removeOperator', { params }, 204);
}

/** Operators with an end, and what they may give. */
async function ends(world: World): Promise<void> {
  const now = () => Math.floor(Date.now() / 1000);
  const [guest, robot] = [newPerson(), newPerson()];
  const end = now() + 3600;
  const add = (person: { readonly publicKey: string }, more: object) => ({
    body: { public_key: person.publicKey, username: 'rob', ...more },
  });
  await world.refuses('addOperator', add(robot, { robot: true }), 'invalid_expiry');
  await world.refuses('addOperator', add(robot, { expires_at: now() - 60 }), 'invalid_expiry');
  const { operator_id } = await world.gives(
    'addOperator',
    add(guest, { username: 'guest', role: 'admin', expires_at: end }),
    201,
  );
  const token = await world.login(guest);
  await world.refuses('addOperator', { token, ...add(robot, {}) }, 'expiry_beyond_own');
  const rob = await world.gives('addOperator', add(robot, { robot: true, expires_at: end }), 201);
  const of = (id: string, expires_at: number | null) => ({
    params: { operator_id: id },
    body: { grants: null, expires_at },
  });
  await world.refuses('setOperatorGrants', { token, ...of(rob.operator_id, end + 60) }, 'expiry_beyond_own');
  await world.refuses('setOperatorGrants', of(rob.operator_id, null), 'invalid_expiry');
  const longer = await world.gives('setOperatorGrants', of(rob.operator_id, end + 60), 200);
  if (longer.expires_at !== end + 60 || longer.robot !== true) throw new Error(JSON.stringify(longer));
  for (const id of [rob.operator_id, operator_id]) {
    await world.gives('removeOperator', { params: { operator_id: id } }, 204);
  }
}

/** A person replaces a key, and has the same name and role with the new one. */
async function rotations(world: World): Promise<void> {
  const [person, other] = [newPerson(), newPerson()];
  await world.gives('addOperator', { body: { public_key: person.publicKey, username: 'rita', role: 'viewer' } }, 201);
  const token = await world.login(person);
  const rotate = (publicKey: string, proof: string) => ({ token, body: { public_key: publicKey, proof } });
  const proof = proveRotation(publicKeyOfKeyObject(person.key), other.key);
  await world.refuses('rotateOperatorKey', rotate('nonsense', proof), 'invalid_public_key');
  await world.refuses('rotateOperatorKey', rotate(other.publicKey, 'ab'.repeat(64)), 'invalid_key_proof');
  const self = proveRotation(publicKeyOfKeyObject(person.key), person.key);
  await world.refuses('rotateOperatorKey', rotate(person.publicKey, self), 'operator_exists');
  const renewed = await world.gives('rotateOperatorKey', rotate(other.publicKey, proof), 200);
  if (renewed.username !== 'rita' || renewed.role !== 'viewer') throw new Error(`not rita: ${JSON.stringify(renewed)}`);
  await world.refuses('getSession', { token }, 'unauthenticated');
  await world.gives('getSession', { token: await world.login(other) }, 200);
  await world.gives('removeOperator', { params: { operator_id: renewed.operator_id } }, 204);
}

/** A name means its holder of now; where several removed operators had it, a filter has to give the ID. */
async function namesThatPass(world: World): Promise<void> {
  const [first, second] = [newPerson(), newPerson()];
  const ids: string[] = [];
  for (const { publicKey } of [first, second]) {
    const added = await world.gives('addOperator', { body: { public_key: publicKey, username: 'carol' } }, 201);
    ids.push(added.operator_id);
    await world.gives('removeOperator', { params: { operator_id: added.operator_id } }, 204);
  }
  for (const id of ['listAuditEvents', 'streamEvents', 'listTerminals', 'searchTerminals']) {
    const query = { ...(id === 'searchTerminals' ? { pattern: '.' } : {}), operator: 'carol' };
    const { json } = await world.refuses(id, { query }, 'invalid_filter');
    if (json.operator_ids.join() !== ids.sort().join())
      throw new Error(`${id} did not name both: ${json.operator_ids}`);
  }
  const named = { query: { operator: ids[0] ?? '' } };
  const { events } = await world.gives('listAuditEvents', named, 200);
  if (events.length !== 2) throw new Error(`the first operator has ${events.length} events, not 2`);
  const back = { public_key: first.publicKey, username: 'carol-2' };
  const { operator_id } = await world.gives('addOperator', { body: back }, 201);
  await world.gives('removeOperator', { params: { operator_id } }, 204);
}

/** A key that no operator has, until it has failed too often; operators are let in all the same. */
export async function tooManyLogins(world: World): Promise<void> {
  const stranger = { as: null, body: { public_key: newPerson().publicKey } };
  let answer = await world.call('createChallenge', stranger);
  for (let tries = 0; tries < 200 && answer.status === 403; tries += 1) {
    answer = await world.call('createChallenge', stranger);
  }
  await world.refuses('createChallenge', stranger, 'rate_limited');
  const body = { public_key: world.people.viewer.publicKey, signature: 'ab'.repeat(64) };
  await world.refuses('verifyChallenge', { as: null, body }, 'rate_limited');
  await world.login(world.people.viewer);
}
