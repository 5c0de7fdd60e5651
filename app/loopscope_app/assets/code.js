// Component of a code listing. The listing and its moment arrive in separate calls; a clicked line is sent to Python.

import { CodeListing } from "./code_listing.js";

/** @import { Call, Listing, ListingMoment } from "./component.js" */

const page = /** @type {any} */ (globalThis);
const NAME = Symbol.for("loopscope.code");
page[NAME] ??= { shown: new Map(), moments: new Map() };
/**
 * The listings on the page and their moments, by key.
 * @type {{ shown: Map<string, CodeListing>, moments: Map<string, ListingMoment> }}
 */
const listings = page[NAME];

/** @param {Call<Listing | ListingMoment>} call */
export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  if (!("lines" in data)) {
    listings.moments.set(data.key, data);
    listings.shown.get(data.key)?.showMoment(data);
    return;
  }
  let code = listings.shown.get(data.key);
  if (!code || code.parent !== parentElement) {
    code = new CodeListing(parentElement);
    code.moment = listings.moments.get(data.key);
    listings.shown.set(data.key, code);
  }
  code.send = (number) => setTriggerValue("pick", number);
  code.receive(data);
  return () => listings.shown.get(data.key) === code && listings.shown.delete(data.key);
}
