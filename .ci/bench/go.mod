module github.com/weirgate/weir/ci/bench

go 1.26.0
