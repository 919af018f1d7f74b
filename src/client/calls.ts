/**
 * What the client needs of each route. The bundle holds these as plain data: the schemas of the contract, and what makes them, are
 * most of what a short command would load.
 */
import { API_BASE, CONTRACT, type RouteId } from '../contract/contract.js';
import type { RouteSpec } from '../contract/route.js';

export interface RouteCall extends Pick<RouteSpec, 'id' | 'method' | 'path' | 'access'> {
  readonly hasBody: boolean;
}

/** The path of the API on its server. */
export const BASE: string = API_BASE;

export const CALLS = Object.fromEntries(
  Object.entries<RouteSpec>(CONTRACT).map(([key, { id, method, path, access, body }]) => [
    key,
    { id, method, path, access, hasBody: body !== undefined },
  ]),
) as Readonly<Record<RouteId, RouteCall>>;
