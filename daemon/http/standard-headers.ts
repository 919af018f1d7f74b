/** Headers of every answer, beside `X-Request-Id`. There are no CORS headers: pages of other sites have no business here. */
export const STANDARD_HEADERS: readonly (readonly [name: string, value: string])[] = [
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
];
