# shellcheck shell=bash
# The features of tests: those of packages, with the system's OpenSSL. All tests have the same, so they share a build.
readonly FEATURES=(--features "loomline-benches/postgres,loomline-runtime/encryption,loomline-cli/encryption,loomline-cli/otel,loomline-cli/postgres")
