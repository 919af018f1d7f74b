/** The page of the API in a browser: it works under its policy, and requests nothing else. */
import { expect, onTestFinished } from 'vitest';
import { createApiServer } from '../../daemon/http/api-server.js';
import { statusHandlers } from '../../daemon/status.js';
import { CONTRACT } from '../../src/contract/contract.js';
import { openApiDocument } from '../../src/contract/openapi.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { BROWSER, Page } from '../support/browser.js';
import { authenticate, authorize, authorizeOn, clock, noKeys } from '../support/http.js';
import { itNeeding } from '../support/needing.js';

itNeeding(BROWSER)('filters and opens entries in a browser, and requests only itself', async () => {
  const { getStatus, getOpenApi, getApiPage, getModuleSchema } = CONTRACT;
  const api = createApiServer({
    authenticate,
    authorize,
    authorizeOn,
    idempotency: noKeys,
    logger: silentLogger,
    clock,
    newRequestId: () => 'id',
    listen: { host: '127.0.0.1', port: 0 },
    tls: null,
    trustProxyTls: false,
    validateAnswers: true,
    contract: { getStatus, getOpenApi, getApiPage, getModuleSchema },
    handlers: statusHandlers({
      health: () => Promise.reject(new Error('not asked')),
      openApi: () => openApiDocument(CONTRACT, { version: '0.1.0' }),
      moduleSchema: () => ({}),
    }),
  });
  await api.start();
  onTestFinished(() => api.stop());
  const url = `http://127.0.0.1:${api.address().port}/api/v1/docs`;
  const page = await Page.open();
  await page.visit(`${url}#getStatus`);
  expect(await page.evaluate(`document.getElementById('getStatus').open`)).toBe(true);
  // The policy permits the style.
  expect(await page.evaluate(`getComputedStyle(document.querySelector('.api-tags')).listStyleType`)).toBe('none');
  await page.evaluate(`document.getElementById('api-search').focus()`);
  await page.type('/agents/{node_id}/drift');
  expect(await page.evaluate(`document.getElementById('getStatus').offsetParent`)).toBe(null);
  expect(await page.evaluate(`document.getElementById('getLatestDrift').offsetParent !== null`)).toBe(true);
  // A request that a script in the page would make is refused.
  await page.evaluate(
    `fetch('/api/v1/status').then(() => { document.title = 'sent'; }, () => { document.title = 'refused'; }); 0`,
  );
  await page.until(`document.title === 'refused' || document.title === 'sent'`);
  expect(await page.evaluate('document.title')).toBe('refused');
  for (const requested of page.requested)
    expect(requested.startsWith(url) || requested.endsWith('/api/v1/status')).toBe(true);
});
