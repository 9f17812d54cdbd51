//! A row of changes, which can be reverted.

use onramp_net::namespace::Namespace;

use super::place::Place;
use super::records::Records;
use super::setting::Setting;
use crate::system::error::Error;

/// Of settings of a network namespace, and of its host.
pub(super) struct Changes<'a> {
    namespace: &'a Namespace,
    records: &'a mut Records,
    done: Vec<Done>,
}

/// A change, with what it found.
struct Done {
    setting: Setting,
    found: String,
    recorded: Option<Setting>,
}

impl<'a> Changes<'a> {
    pub fn new(namespace: &'a Namespace, records: &'a mut Records) -> Self {
        Self { namespace, records, done: Vec::new() }
    }

    pub fn set(&mut self, name: &str, to: &str) -> Result<(), Error> {
        let place = Place::new(name, self.namespace);
        let found = place.get(name)?;
        if found == to {
            return Ok(());
        }
        let recorded = self.records.settings(place.cookie()?)?.into_iter().find(|one| one.name == name);
        // A value that another process has set since is the previous one now.
        let before = recorded.as_ref().filter(|one| one.set == found).map(|one| one.before.clone());
        let before = before.unwrap_or_else(|| found.clone());
        let setting = Setting { name: name.into(), before, set: to.into() };
        self.done.push(Done { setting: setting.clone(), found, recorded });
        self.by_way_of_before(&setting, Some(&setting), to)
    }

    /// As far as the kernel lets it, which it did before.
    pub fn take_back(&mut self) {
        for Done { setting, found, recorded } in std::mem::take(&mut self.done).into_iter().rev() {
            if let Err(error) = self.by_way_of_before(&setting, recorded.as_ref(), &found) {
                tracing::error!("{error}");
            }
        }
    }

    /// What was changed, and not reverted.
    pub fn into_settings(self) -> Vec<Setting> {
        self.done.into_iter().map(|done| done.setting).collect()
    }

    /// Sets what was before, then records, then sets the value: whenever this is cut off, the record has the previous value.
    fn by_way_of_before(
        &mut self,
        setting: &Setting,
        record: Option<&Setting>,
        to: &str,
    ) -> Result<(), Error> {
        let Setting { name, before, .. } = setting;
        let place = Place::new(name, self.namespace);
        let cookie = place.cookie()?;
        if place.get(name)? != *before {
            place.set(name, before)?;
        }
        match record {
            Some(record) => self.records.insert(cookie, record)?,
            None => self.records.remove(cookie, name)?,
        }
        if to != before {
            place.set(name, to)?;
        }
        Ok(())
    }
}
