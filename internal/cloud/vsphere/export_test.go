package vsphere

// MaxPages is for tests.
const MaxPages = maxPages
