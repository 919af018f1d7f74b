/** Where channels may send: every form of an address that is not public, names that change, and what an operator allows. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { AddressPolicy, type AddressRules } from '../../daemon/notify/address-policy.js';
import { post } from '../../daemon/notify/post.js';
import { rejection } from '../support/database.js';
import { tlsFiles } from '../support/http.js';
import { ADA, openNotify, startReceiver } from '../support/notify.js';

const policyOf = (rules: Partial<AddressRules> = {}, own: { ports?: number[]; addresses?: string[] } = {}) =>
  new AddressPolicy({
    rules: () => ({ allowNetworks: [], allowHttp: false, ...rules }),
    own: () => ({ ports: own.ports ?? [], addresses: own.addresses ?? [] }),
  });

const HTTPS = { port: 443, isTls: true };

describe('an address', () => {
  it.each([
    ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '100.64.0.1', '100.100.100.200', '127.0.0.1', '127.255.255.254'],
    ...['169.254.169.254', '168.63.129.16', '172.16.0.1', '172.31.255.255', '192.0.0.192', '192.168.1.1'],
    ...['198.18.0.1', '224.0.0.1', '239.255.255.250', '255.255.255.255', '192.0.2.1'],
    ...['::', '::1', '::127.0.0.1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:a9fe:a9fe', '64:ff9b::7f00:1'],
    ...[
      '64:ff9b:1::1',
      '2002:7f00:1::',
      '2001::1',
      '2001:db8::1',
      'fe80::1',
      'fe80::1%eth0',
      'fc00::1',
      'fd00:ec2::254',
    ],
    ...['fec0::1', 'ff02::1', '3fff::1', '5f00::1', '100::1'],
  ])('%s is refused, with the setting that would allow it', (address) => {
    expect(policyOf().refusal(address, HTTPS)).toMatch(/is not a public address.*notifications\.allow_networks/);
  });

  it.each(['1.1.1.1', '11.0.0.1', '172.32.0.1', '100.128.0.1', '223.255.255.255', '2606:4700::1111', '2a00::1'])(
    '%s is public',
    (address) => {
      const policy = policyOf();
      expect(policy.refusal(address, HTTPS)).toBeNull();
      expect(policy.refusal(address, { port: 8443, isTls: true })).toBeNull();
      expect(policy.refusal(address, { port: 22, isTls: true })).toMatch(/port 22 .*notifications\.allow_networks/);
      expect(policy.refusal(address, { port: 80, isTls: false })).toMatch(/notifications\.allow_http/);
      expect(policyOf({ allowHttp: true }).refusal(address, { port: 80, isTls: false })).toBeNull();
    },
  );

  it('in an allowed network is free, with any port and plain HTTP', () => {
    const policy = policyOf({ allowNetworks: ['10.1.0.0/16', 'fd00:1::/32'] });
    const plain = { port: 8080, isTls: false };
    expect(policy.refusal('10.1.255.1', plain)).toBeNull();
    expect(policy.refusal('::ffff:10.1.2.3', plain)).toBeNull();
    expect(policy.refusal('fd00:1::5', plain)).toBeNull();
    expect(policy.refusal('10.2.0.1', plain)).not.toBeNull();
    expect(policy.refusal('fd00:2::1', plain)).not.toBeNull();
  });

  it('of the orchestrator itself is refused, whatever is allowed', () => {
    const own = { ports: [4747, 4748], addresses: ['198.51.100.7', 'fe80::7%eth0'] };
    const policy = policyOf({ allowNetworks: ['0.0.0.0/0', '::/0'] }, own);
    for (const address of ['127.0.0.1', '127.9.9.9', '0.0.0.0', '::1', '::ffff:127.0.0.1', '198.51.100.7']) {
      expect(policy.refusal(address, { port: 4748, isTls: true })).toMatch(/is this orchestrator itself/);
    }
    expect(policy.refusal('198.51.100.7', { port: 9000, isTls: false })).toBeNull();
    expect(policy.refusal('198.51.100.8', { port: 4748, isTls: true })).toBeNull();
  });
});

const outgoing = (url: string) => ({ url, headers: {}, body: '{}' });
const never = new AbortController().signal;

async function reasonOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return { reason: (error as { reason?: string }).reason, message: (error as Error).message };
  }
  return 'nothing was thrown';
}

describe('a request', () => {
  it.each([
    ...['127.0.0.1', '127.1', '2130706433', '0x7f000001', '0177.0.0.1', '[::1]', '[::ffff:127.0.0.1]', '127.0.0.1.'],
  ])('to http://%s is refused before anything is sent', async (host) => {
    const receiver = await startReceiver();
    const resolve = async () => ['127.0.0.1'];
    const refused = await reasonOf(
      post(outgoing(`http://${host}:${receiver.port}/`), { policy: policyOf(), resolve }, never),
    );
    expect(refused).toMatchObject({ reason: 'address_not_allowed' });
    expect(receiver.requests).toEqual([]);
  });

  it('is refused when any address of the name is not allowed', async () => {
    const receiver = await startReceiver();
    const policy = policyOf({ allowNetworks: ['127.0.0.1/32'] });
    const resolve = async () => ['127.0.0.1', '169.254.169.254'];
    const refused = await reasonOf(
      post(outgoing(`http://rebind.example:${receiver.port}/`), { policy, resolve }, never),
    );
    expect(refused).toMatchObject({
      reason: 'address_not_allowed',
      message: expect.stringContaining('169.254.169.254'),
    });
    expect(receiver.requests).toEqual([]);
  });

  it('goes to the address that was checked, however the name answers afterwards', async () => {
    const [good, bad] = [await startReceiver(), await startReceiver()];
    const policy = policyOf({ allowNetworks: ['127.0.0.1/32'] });
    const answers = ['127.0.0.1', '10.0.0.1'];
    let asked = 0;
    const resolve = async () => [answers[asked++] ?? ''];
    const url = `http://rebind.example:${good.port}/`;
    expect(await post(outgoing(url), { policy, resolve }, never)).toMatchObject({ status: 200 });
    expect(asked).toBe(1);
    expect(good.requests[0]?.headers.host).toBe(`rebind.example:${good.port}`);
    // The next time the name is asked again, and its new address refused.
    expect(await reasonOf(post(outgoing(url), { policy, resolve }, never))).toMatchObject({
      reason: 'address_not_allowed',
    });
    expect(bad.requests).toEqual([]);
  });

  it('tries the next address of a name when one does not answer', async () => {
    const receiver = await startReceiver();
    const policy = policyOf({ allowNetworks: ['127.0.0.0/8'] });
    const resolve = async () => ['127.0.0.2', '127.0.0.1'];
    const reply = await post(outgoing(`http://two.example:${receiver.port}/`), { policy, resolve }, never);
    expect(reply.status).toBe(200);
  });

  it('checks the name of the certificate, not its address', async () => {
    const tls = tlsFiles();
    const receiver = await startReceiver(tls);
    const options = { policy: policyOf({ allowNetworks: ['127.0.0.0/8'] }), resolve: async () => ['127.0.0.1'] };
    const trusting = { ...options, authorities: tls.cert };
    expect(await post(outgoing(`https://localhost:${receiver.port}/`), trusting, never)).toMatchObject({ status: 200 });
    expect(await post(outgoing(`https://127.0.0.1:${receiver.port}/`), trusting, never)).toMatchObject({ status: 200 });
    const other = await reasonOf(post(outgoing(`https://other.example:${receiver.port}/`), trusting, never));
    expect(other).toMatchObject({ reason: 'tls_failed' });
    expect(receiver.requests).toHaveLength(2);
  });

  it('uses no proxy of the environment', async () => {
    const [receiver, proxy] = [await startReceiver(), await startReceiver()];
    const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY', 'NODE_USE_ENV_PROXY'];
    const before = names.map((name) => [name, process.env[name]] as const);
    onTestFinished(() => {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    });
    for (const name of names) process.env[name] = name === 'NODE_USE_ENV_PROXY' ? '1' : proxy.url;
    const options = { policy: policyOf({ allowNetworks: ['127.0.0.0/8'] }), resolve: async () => ['127.0.0.1'] };
    expect(await post(outgoing(receiver.url), options, never)).toMatchObject({ status: 200 });
    expect(proxy.requests).toEqual([]);
  });

  it('tells of a name that there is not', async () => {
    const resolve = async () => {
      throw new Error('ENOTFOUND');
    };
    const failed = await reasonOf(post(outgoing('https://none.example/'), { policy: policyOf(), resolve }, never));
    expect(failed).toEqual({ reason: 'unresolvable', message: 'the name none.example has no address' });
  });
});

describe('the test of a channel', () => {
  const tested = async (url: string, rules: Partial<AddressRules>, ownPorts: readonly number[] = []) => {
    const notify = await openNotify({ rules: { allowNetworks: [], ...rules }, ownPorts });
    onTestFinished(() => notify.close());
    const { id } = await notify.channel('webhook', { url }, 'ops');
    return { notify, id };
  };

  it('names the setting that keeps it from its address', async () => {
    const { notify, id } = await tested('https://hooks.example/', {});
    const failed = await rejection(notify.tester.test(id, ADA, never));
    expect(failed).toMatchObject({
      code: 'delivery_failed',
      data: { reason: 'address_not_allowed', status_code: null },
    });
    expect(failed.message).toMatch(
      /^the channel ops could not be reached: 127\.0\.0\.1 .*notifications\.allow_networks$/,
    );
  });

  it('does not reach the listeners of the orchestrator', async () => {
    const receiver = await startReceiver();
    const { notify, id } = await tested(`http://hooks.example:${receiver.port}/`, { allowNetworks: ['127.0.0.0/8'] }, [
      receiver.port,
    ]);
    const failed = await rejection(notify.tester.test(id, ADA, never));
    expect(failed).toMatchObject({ code: 'delivery_failed', data: { reason: 'address_not_allowed' } });
    expect(receiver.requests).toEqual([]);
  });
});
