// SPDX-License-Identifier: Apache-2.0
// A column is followed from the keys of the groups back to the scan of its table, through filters and joins that leave
// its values as they are. What is followed must be clear: each relation and each table that is read again is named
// once, and a select in between ends the search.
#include "tools/query/late_columns.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "runtime/base/thresholds.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/list_parser.h"
#include "tools/query/wanted_names.h"

namespace quern::query {
namespace {

// A column of a table.
struct Origin {
  size_t table;
  size_t column;

  bool operator==(const Origin&) const = default;
};

std::string NameOf(const cli::KeyText& key) {
  if (key.computed == nullptr) return key.name;
  return key.computed->form == cli::ExpressionText::Form::kColumn ? key.computed->text : "";
}

bool IsEqual(const std::string& a, const std::string& b) { return cli::LowerCase(a) == cli::LowerCase(b); }

cli::KeyText KeyOf(const std::string& name) {
  cli::KeyText key;
  key.name = name;
  return key;
}

QueryStep Scan(const std::string& relation) {
  QueryStep step;
  step.kind = StepKind::kScan;
  step.text = "scan " + relation;
  step.relation = relation;
  return step;
}

QueryStep Join(const std::string& relation, const std::string& probe, const std::string& build) {
  QueryStep step;
  step.kind = StepKind::kJoin;
  step.text = "join " + relation + " on " + probe + " = " + build;
  step.relation = relation;
  cli::JoinTermText term;
  term.probe = KeyOf(probe);
  term.build = KeyOf(build);
  step.on.push_back(std::move(term));
  return step;
}

cli::SelectText Selected(const std::string& column, const std::string& name) {
  cli::SelectText selected;
  selected.expression.form = cli::ExpressionText::Form::kColumn;
  selected.expression.text = column;
  selected.expression.shown = column;
  selected.name = name;
  selected.is_named = true;
  return selected;
}

// A table that is read again, and what it is joined by.
struct LateTable {
  size_t table;
  size_t key;        // its column
  std::string link;  // the column of what is there before that is equal
};

class LateColumns {
 public:
  LateColumns(const QueryText& text, const std::vector<QueryTable>& tables)
      : text_(text), tables_(tables), last_(text.relations.size() - 1) {}

  std::optional<QueryText> Find();

 private:
  const QueryRelation& result() const { return text_.relations[last_]; }
  const QueryStep& groups() const { return result().steps[aggregate_]; }

  bool FindSteps();
  bool IsNamedOnce(const std::string& name) const;
  size_t TableNamed(const std::string& name, size_t before) const;
  std::optional<Origin> Trace(size_t relation, size_t last_step, const std::string& name) const;
  std::optional<Origin> TraceSource(const QueryStep& step, size_t relation, const std::string& name) const;
  bool IsKey(const Origin& origin);
  bool IsLate(size_t table) const;
  bool IsText(const Origin& origin) const;
  bool HasText(size_t table) const;
  bool IsLateKey(size_t k, const std::set<std::string>& mentioned) const;
  void AddKeysOfGroups();
  bool AddJoined();
  bool SavesMuch() const;
  bool HasClearNames() const;
  std::set<std::string> MentionedBehind() const;
  QueryText Rewrite() const;

  const QueryText& text_;
  const std::vector<QueryTable>& tables_;
  const size_t last_;
  uint64_t most_rows_ = 0;                      // of a table
  size_t aggregate_ = 0, sort_ = 0;             // steps of the result
  std::vector<std::optional<Origin>> origins_;  // of the keys of groups
  std::map<std::pair<size_t, size_t>, bool> is_key_;
  std::vector<LateTable> late_;    // in the order in which they can be read
  std::vector<bool> is_late_key_;  // of the keys of groups
};

// Groups, filters of groups, a sort with a limit, selects: nothing else.
bool LateColumns::FindSteps() {
  const std::vector<QueryStep>& steps = result().steps;
  for (size_t s = 0; s < steps.size(); ++s)
    if (steps[s].kind == StepKind::kAggregate) aggregate_ = s;
  if (aggregate_ == 0) return false;
  for (size_t s = aggregate_ + 1; s < steps.size(); ++s) {
    const StepKind kind = steps[s].kind;
    if (sort_ == 0 && kind == StepKind::kFilter) continue;
    if (sort_ == 0 && kind == StepKind::kSort && steps[s].limit != 0) sort_ = s;
    else if (sort_ == 0 || kind != StepKind::kSelect) return false;
  }
  return sort_ != 0;
}

bool LateColumns::IsNamedOnce(const std::string& name) const {
  size_t uses = 0;
  for (const QueryRelation& relation : text_.relations)
    for (const QueryStep& step : relation.steps) uses += step.relation == name ? 1 : 0;
  return uses == 1;
}

// Of a source that is a table and no relation; npos: none.
size_t LateColumns::TableNamed(const std::string& name, size_t before) const {
  if (FindRelation(text_, name, before) != std::string::npos) return std::string::npos;
  for (size_t t = 0; t < tables_.size(); ++t)
    if (tables_[t].name == name) return t;
  return std::string::npos;
}

std::optional<Origin> LateColumns::TraceSource(const QueryStep& step, size_t relation, const std::string& name) const {
  if (!IsNamedOnce(step.relation)) return std::nullopt;
  const size_t named = FindRelation(text_, step.relation, relation);
  if (named != std::string::npos) return Trace(named, text_.relations[named].steps.size() - 1, name);
  const size_t table = TableNamed(step.relation, relation);
  if (table == std::string::npos) return std::nullopt;
  for (size_t c = 0; c < tables_[table].columns.size(); ++c)
    if (IsEqual(tables_[table].columns[c].name, name)) return Origin{table, c};
  return std::nullopt;
}

// The origin of a column in the rows behind a step.
std::optional<Origin> LateColumns::Trace(size_t relation, size_t last_step, const std::string& name) const {
  const std::vector<QueryStep>& steps = text_.relations[relation].steps;
  for (size_t s = last_step; s != SIZE_MAX; --s) {
    const QueryStep& step = steps[s];
    switch (step.kind) {
      case StepKind::kScan: return TraceSource(step, relation, name);
      case StepKind::kFilter: break;
      case StepKind::kJoin:
        switch (step.join) {
          case JoinKind::kInner:
            if (s == 0) return std::nullopt;
            // A key of both sides is the left one's.
            if (const auto left = Trace(relation, s - 1, name)) return left;
            return TraceSource(step, relation, name);
          case JoinKind::kSemi:
          case JoinKind::kAnti:
          case JoinKind::kAntiNullAware: break;
          default: return std::nullopt;
        }
        break;
      default: return std::nullopt;
    }
  }
  return std::nullopt;
}

bool LateColumns::IsKey(const Origin& origin) {
  const QueryTable& table = tables_[origin.table];
  if (table.num_rows > most_rows_ / thresholds::kLateRowsShare) return false;
  const auto [known, is_new] = is_key_.try_emplace({origin.table, origin.column}, false);
  if (is_new && table.is_key) known->second = table.is_key(origin.column);
  return known->second;
}

bool LateColumns::IsLate(size_t table) const {
  return std::any_of(late_.begin(), late_.end(), [table](const LateTable& late) { return late.table == table; });
}

bool LateColumns::IsText(const Origin& origin) const {
  const std::optional<ColumnType>& type = tables_[origin.table].columns[origin.column].type;
  return type.has_value() && IsVariable(RowOf(type->id).storage);
}

// Whether a string of the table is a key of the groups.
bool LateColumns::HasText(size_t table) const {
  return std::any_of(origins_.begin(), origins_.end(), [&](const std::optional<Origin>& origin) {
    return origin.has_value() && origin->table == table && IsText(*origin);
  });
}

// Whether a key of the groups is fetched: it is a column of a table that is read again, but not the one that decides
// the others, and nothing before that mentions it.
bool LateColumns::IsLateKey(size_t k, const std::set<std::string>& mentioned) const {
  const std::optional<Origin>& origin = origins_[k];
  const cli::KeyText& key = groups().keys[k];
  const auto decides = [&](const LateTable& late) {
    return late.table == origin->table && late.link == key.result_name();
  };
  return origin.has_value() && IsLate(origin->table) && key.collation.empty() &&
         mentioned.count(cli::LowerCase(key.result_name())) == 0 && std::none_of(late_.begin(), late_.end(), decides);
}

// Tables of which a key of the groups is a key.
void LateColumns::AddKeysOfGroups() {
  for (size_t k = 0; k < origins_.size(); ++k) {
    const std::optional<Origin>& origin = origins_[k];
    if (!origin.has_value() || IsLate(origin->table) || !IsKey(*origin)) continue;
    late_.push_back({origin->table, origin->column, groups().keys[k].result_name()});
  }
}

// Tables whose key is joined with a column of one that is there. Returns whether there is another one.
bool LateColumns::AddJoined() {
  bool added = false;
  for (size_t r = 0; r < text_.relations.size(); ++r) {
    const std::vector<QueryStep>& steps = text_.relations[r].steps;
    for (size_t s = 1; s < steps.size(); ++s) {
      const QueryStep& step = steps[s];
      if (step.kind != StepKind::kJoin || step.join != JoinKind::kInner || step.on.size() != 1) continue;
      const cli::JoinTermText& term = step.on.front();
      const size_t table = TableNamed(step.relation, r);
      if (!term.is_comparison || term.op != Comparison::kEqual || !term.collation.empty()) continue;
      if (table == std::string::npos || IsLate(table) || !HasText(table)) continue;
      const auto key = TraceSource(step, r, NameOf(term.build)), link = Trace(r, s - 1, NameOf(term.probe));
      if (!key.has_value() || !link.has_value() || !IsLate(link->table) || !IsKey(*key)) continue;
      if (tables_[key->table].columns[key->column].type != tables_[link->table].columns[link->column].type) continue;
      late_.push_back({table, key->column, tables_[link->table].columns[link->column].name});
      added = true;
    }
  }
  return added;
}

bool LateColumns::SavesMuch() const {
  uint64_t read_again = 0;
  for (const LateTable& late : late_) read_again += tables_[late.table].num_rows;
  return read_again <= most_rows_ / thresholds::kLateRowsShare;
}

// Names that filters of groups and the sort mention.
std::set<std::string> LateColumns::MentionedBehind() const {
  WantedNames wanted;
  for (size_t s = aggregate_ + 1; s <= sort_; ++s) {
    const QueryStep& step = result().steps[s];
    std::vector<std::string> names;
    for (const cli::WhereText& condition : step.conditions) cli::AddNames(condition, &names);
    for (const std::string& name : names) wanted.Add(name);
    for (const cli::ExpressionText& expression : step.expressions) wanted.Add(expression);
    for (const cli::SortKeyText& key : step.sort_keys) {
      wanted.Add(key.column.name);
      if (key.column.computed != nullptr) wanted.Add(*key.column.computed);
    }
  }
  return wanted.names;
}

// Whether a table that is read again has no column of a name that is there already, but for what it is joined by.
bool LateColumns::HasClearNames() const {
  std::set<std::string> there;
  for (size_t k = 0; k < origins_.size(); ++k)
    if (!is_late_key_[k]) there.insert(cli::LowerCase(groups().keys[k].result_name()));
  for (const cli::AggregateText& call : groups().aggregates) there.insert(cli::LowerCase(call.name));
  for (const LateTable& late : late_) {
    const QueryTable& table = tables_[late.table];
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const std::string name = cli::LowerCase(table.columns[c].name);
      if (c == late.key && name == cli::LowerCase(late.link)) continue;
      if (!there.insert(name).second) return false;
    }
  }
  return true;
}

QueryText LateColumns::Rewrite() const {
  QueryText text = text_;
  const QueryRelation whole = std::move(text.relations.back());
  text.relations.pop_back();
  std::string before;
  const auto add = [&](const std::string& part, std::vector<QueryStep> steps) {
    std::string name = whole.name + part;
    while (FindRelation(text_, name, text_.relations.size()) != std::string::npos ||
           TableNamed(name, last_) != std::string::npos)
      name += "'";
    text.relations.push_back({name, whole.line, std::move(steps)});
    before = name;
  };
  std::vector<QueryStep> keys(whole.steps.begin(), whole.steps.begin() + static_cast<ptrdiff_t>(sort_) + 1);
  std::vector<cli::KeyText>& of_groups = keys[aggregate_].keys;
  of_groups.clear();
  for (size_t k = 0; k < origins_.size(); ++k)
    if (!is_late_key_[k]) of_groups.push_back(groups().keys[k]);
  add(", keys", std::move(keys));
  for (const LateTable& late : late_) {
    const QueryTable& table = tables_[late.table];
    add(", " + table.name, {Scan(table.name), Join(before, table.columns[late.key].name, late.link)});
  }
  QueryStep sort = whole.steps[sort_];
  sort.offset = 0;  // the first rows are gone
  QueryStep select;
  select.kind = StepKind::kSelect;
  for (size_t k = 0; k < origins_.size(); ++k) {
    const std::string name = groups().keys[k].result_name();
    const bool is_late = is_late_key_[k];
    select.select.push_back(
        Selected(is_late ? tables_[origins_[k]->table].columns[origins_[k]->column].name : name, name));
    select.text += (select.text.empty() ? "select " : ", ") + name;
  }
  for (const cli::AggregateText& call : groups().aggregates) {
    select.select.push_back(Selected(call.name, call.name));
    select.text += (select.text.empty() ? "select " : ", ") + call.name;
  }
  std::vector<QueryStep> steps = {Scan(before), std::move(sort), std::move(select)};
  steps.insert(steps.end(), whole.steps.begin() + static_cast<ptrdiff_t>(sort_) + 1, whole.steps.end());
  text.relations.push_back({whole.name, whole.line, std::move(steps)});
  for (QueryStep& step : text.relations.back().steps) step.line = whole.line;
  return text;
}

std::optional<QueryText> LateColumns::Find() {
  for (const QueryTable& table : tables_) most_rows_ = std::max(most_rows_, table.num_rows);
  if (!FindSteps() || result().steps[sort_].limit > most_rows_ / thresholds::kLateLimitShare) return std::nullopt;
  for (const cli::KeyText& key : groups().keys) origins_.push_back(Trace(last_, aggregate_ - 1, NameOf(key)));
  const bool has_text = std::any_of(origins_.begin(), origins_.end(), [this](const std::optional<Origin>& origin) {
    return origin.has_value() && HasText(origin->table);
  });
  if (!has_text) return std::nullopt;
  AddKeysOfGroups();
  while (!late_.empty() && AddJoined()) continue;
  // Tables by which no string is decided are not read again.
  const std::set<std::string> mentioned = MentionedBehind();
  const auto is_needed = [&](const LateTable& late) {
    const auto links = [&](const LateTable& other) {
      return other.table != late.table &&
             std::any_of(tables_[late.table].columns.begin(), tables_[late.table].columns.end(),
                         [&](const QueryColumn& column) { return column.name == other.link; });
    };
    return HasText(late.table) || std::any_of(late_.begin(), late_.end(), links);
  };
  std::erase_if(late_, [&](const LateTable& late) { return !is_needed(late); });
  bool has_late_text = false;
  for (size_t k = 0; k < origins_.size(); ++k) {
    is_late_key_.push_back(IsLateKey(k, mentioned));
    has_late_text = has_late_text || (is_late_key_[k] && IsText(*origins_[k]));
  }
  if (!has_late_text || !SavesMuch() || !HasClearNames()) return std::nullopt;
  return Rewrite();
}

}  // namespace

std::optional<QueryText> WithLateColumns(const QueryText& text, const std::vector<QueryTable>& tables) {
  return LateColumns(text, tables).Find();
}

}  // namespace quern::query
