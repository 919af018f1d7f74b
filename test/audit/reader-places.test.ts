import { describe, expect, it } from 'vitest';
import { READER_LIMITS, type Reader, ReaderPlaces } from '../../daemon/audit/reader-places.js';
import { faultOf } from '../support/identity.js';

const { all, operator, network, admins } = READER_LIMITS;

/** Takes a place for each of `count` readers; each one is another operator of another network unless `own` says so. */
function fill(places: ReaderPlaces, count: number, own: Partial<Reader> = {}) {
  return Array.from({ length: count }, (_, n) =>
    places.take({ operatorId: `of-${n}`, isAdmin: false, address: `10.0.${n >> 8}.${n & 255}`, ...own }),
  );
}
const admin: Reader = { operatorId: 'root', isAdmin: true, address: '192.0.2.1' };

describe('the readers of the audit log', () => {
  it('of one operator take no more than their share, and get a place when one leaves', () => {
    const places = new ReaderPlaces();
    const [leave] = fill(places, operator, { operatorId: 'greedy' });
    const take = () => fill(places, 1, { operatorId: 'greedy', address: '192.0.2.9' });
    expect(faultOf(take)).toEqual({
      code: 'rate_limited',
      message: `${operator} readers of your operator follow the audit log already`,
      hint: 'end one of them, or ask for pages with GET /audit',
    });
    fill(places, 1);
    leave?.();
    leave?.();
    take();
    expect(() => take()).toThrow();
  });

  it('of one network take no more than their share, whatever operators they are', () => {
    const places = new ReaderPlaces();
    fill(places, network / 2, { address: '2001:db8::1' });
    Array.from({ length: network / 2 }, (_, n) => fill(places, 1, { operatorId: `b${n}`, address: `2001:db8::${n}` }));
    const take = (address: string) => fill(places, 1, { operatorId: 'late', address });
    expect(faultOf(() => take('2001:db8::ffff')).message).toBe(
      `${network} readers of your network follow the audit log already`,
    );
    take('2001:db8:0:1::1');
    places.take({ ...admin, address: '2001:db8::ffff' });
  });

  it('leave room for admins', () => {
    const places = new ReaderPlaces();
    fill(places, all - admins);
    expect(faultOf(() => fill(places, 1, { address: '192.0.2.3' })).message).toBe(
      `${all - admins} readers that are no admins follow the audit log already`,
    );
    for (let n = 0; n < admins; n += 1) places.take({ ...admin, operatorId: `admin-${n}` });
    expect(faultOf(() => places.take(admin)).message).toBe(`${all} readers follow the audit log already`);
  });
});
