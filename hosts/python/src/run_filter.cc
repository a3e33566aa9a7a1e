// SPDX-License-Identifier: Apache-2.0
// A filter is a view and nothing else: its rows are gathered morsel by morsel, by any thread, and put back into the
// order of the source.
#include <utility>

#include "operator_parts.h"

namespace quern::python {

Table RunFilter(const std::shared_ptr<const View>& view, const RunOptions& options) {
  OrderedBatches out;
  Feed feed(view->source());
  RunWorkers(ThreadsFor(*view, options.threads), [&](uint32_t, const StopFlag& stop) {
    RowRoom room;
    while (!stop) {
      std::optional<Feed::Morsel> morsel = feed.Next();
      if (!morsel) return;
      Batch batch = view->Gather(std::move(morsel->batch), &room);
      if (batch.num_rows > 0) out.Add(morsel->number, std::move(batch));
    }
  });
  return MakeTable(view->output_fields(), out.Take());
}

std::unique_ptr<Reader> ReadFilter(const std::shared_ptr<const View>& view) {
  const auto feed = std::make_shared<Feed>(view->source());
  return std::make_unique<Reader>(
      view->output_fields(),
      [view, feed, room = RowRoom()](const Reader::Pause& pause) mutable -> std::optional<Batch> {
        while (std::optional<Feed::Morsel> morsel = feed->Next()) {
          pause();
          Batch batch = view->Gather(std::move(morsel->batch), &room);
          if (batch.num_rows > 0) return batch;
        }
        return std::nullopt;
      });
}

}  // namespace quern::python
