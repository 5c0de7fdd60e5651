// The component of code: the listing and its moment come apart, and what is picked goes to Python.

import { CodeListing } from "./code_listing.js";

/** @import { Call, Listing, ListingMoment } from "./component.js" */

const page = /** @type {any} */ (globalThis);
const NAME = Symbol.for("loopscope.code");
page[NAME] ??= { shown: new Map(), moments: new Map() };
/** Listings and their moments, by key: two components meet here. @type {{ shown: Map<string, CodeListing>, moments: Map<string, ListingMoment> }} */
const listings = page[NAME];

/** @param {Call<Listing | ListingMoment>} call */
export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  if (!("lines" in data)) {
    listings.moments.set(data.key, data);
    listings.shown.get(data.key)?.at(data);
    return;
  }
  let code = listings.shown.get(data.key);
  if (!code || code.host !== parentElement) {
    code = new CodeListing(parentElement);
    code.moment = listings.moments.get(data.key);
    listings.shown.set(data.key, code);
  }
  code.send = (number) => setTriggerValue("pick", number);
  code.receive(data);
  return () => listings.shown.get(data.key) === code && listings.shown.delete(data.key);
}
