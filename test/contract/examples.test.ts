/** The examples of requests and answers in the OpenAPI document fit its schemas. */
import { expect, it } from 'vitest';
import { CONTRACT } from '../../src/contract/contract.js';
import { EXAMPLES } from '../../src/contract/examples.js';
import { openApiDocument } from '../../src/contract/openapi.js';
import { isLocated, type RouteSpec } from '../../src/contract/route.js';
import { DescribedApi } from '../api/described-api.js';

const api = new DescribedApi(JSON.parse(JSON.stringify(openApiDocument(CONTRACT, { version: '0.1.0' }))));

it('are those of all operations, and of no others', () => {
  expect(Object.keys(EXAMPLES).sort()).toEqual(Object.keys(CONTRACT).sort());
});

it.each(Object.values<RouteSpec>(CONTRACT))('$id', ({ id, body, mediaType = 'application/json' }) => {
  const { status = 0, answer, body: sent } = EXAMPLES[id] ?? {};
  if (body !== undefined)
    expect(sent !== undefined || api.operation(id).object.requestBody?.required === false).toBe(true);
  expect(api.requestProblemsOf(id, sent === undefined ? null : JSON.stringify(sent))).toEqual([]);
  const headers = {
    'x-request-id': '01JQ2Z6T0V5X8Y4M3N7P9R1S2T',
    ...(isLocated(status) ? { location: '/api/v1/modules/base' } : {}),
    ...(answer === undefined ? {} : { 'content-type': mediaType }),
  };
  const text = answer === undefined ? '' : String(answer);
  // An example of events is cut in the middle of one.
  if (mediaType !== 'text/event-stream')
    expect(api.problemsOf(id, { status, headers, text, json: answer })).toEqual([]);
});

it('stand in the document', () => {
  for (const { id, mediaType = 'application/json' } of Object.values<RouteSpec>(CONTRACT)) {
    const { requestBody, responses } = api.operation(id).object;
    const { status, answer, body } = EXAMPLES[id] ?? {};
    if (body !== undefined) expect(requestBody?.content['application/json'], id).toMatchObject({ example: body });
    if (answer !== undefined)
      expect(responses[String(status)]?.content?.[mediaType], id).toMatchObject({ example: answer });
  }
});
