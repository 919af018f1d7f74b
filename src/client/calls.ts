/**
 * Method, path and access of each route. The bundle holds them as plain data, because loading the contract's schemas would
 * take most of a short command's time.
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
